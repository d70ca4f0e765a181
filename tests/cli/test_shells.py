"""TAB in real shells: what `trainhub completion SHELL` prints, installed as its first lines say."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from tests.cli.command_line import PROJECT, CommandLine, Result, run_in_terminal
from tests.sdk.scripted_hub import Reply, ScriptedHub

ROWS = [
    {"number": number, "state": "Running", "display_name": f"a name: of, {number}"} for number in (4711, 4712)
]
PAGE = Reply(body=json.dumps({"results": ROWS, "next": None}).encode())
READY = "ready> "
SHELLS = {
    "bash": (["bash", "--noprofile", "-i"], ".bashrc", f"PS1='{READY}'\nbind 'set bell-style none'\n"),
    "zsh": (["zsh", "-i"], ".zshrc", f"PS1='{READY}'\nunsetopt beep\n"),
    "fish": (
        ["fish", "-i"],
        ".config/fish/config.fish",
        f"function fish_prompt; echo -n '{READY}'; end\nset -g fish_greeting\n",
    ),
}
ERASE_LINE = "\x15"


class Shell:
    """A shell with a home of its own, in which the completion is installed."""

    def __init__(self, trainhub: CommandLine, name: str) -> None:
        self.argv, file, text = SHELLS[name]
        assert shutil.which(name), f"{name} is missing: run .ci/system-packages"
        home = trainhub.home
        settings = home / file
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(text)
        program = home / "bin" / "trainhub"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m trainhub_cli "$@"\n')
        program.chmod(0o755)
        self.environment = {
            **trainhub.environment,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }
        script = trainhub("completion", name).out
        line = script.split("# To install it: ")[1].split("\n")[0]
        subprocess.run(["sh", "-c", line], env=self.environment, check=True, cwd=home)

    def type(self, *keys: tuple[str, str]) -> Result:
        return run_in_terminal(self.argv, self.environment, keys=keys, seconds=30)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, scripted: tuple[ScriptedHub, str], trainhub: CommandLine) -> Shell:
    scripted[0].replies = [PAGE]
    return Shell(trainhub, request.param)


def test_tab_completes_commands_and_runs(shell: Shell) -> None:
    result = shell.type(
        (READY, "trainhub logi\t"),
        ("login", f"{ERASE_LINE}trainhub logs \t\t"),
        ("4712", f"{ERASE_LINE}trainhub logs @l\t"),
        ("@last", f"{ERASE_LINE}exit\r"),
    )
    # The shell ends by `exit` only if each text has appeared.
    assert result.code == 0, result.out


def test_a_hub_that_does_not_answer_holds_the_terminal_for_a_moment_only(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        shell.environment["TRAINHUB_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started_at = time.monotonic()
        result = shell.type(
            (READY, f"trainhub logs \t{ERASE_LINE}echo al''ive\r"), ("alive", f"{ERASE_LINE}exit\r")
        )
    assert result.code == 0, result.out
    # A request of the SDK waits for 30 s, this one for 2.
    assert time.monotonic() - started_at < 20
