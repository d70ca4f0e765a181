"""It starts at once: what a command does not need is not loaded."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.cli.command_line import PROJECT, CommandLine
from tests.sdk.scripted_hub import Reply, ScriptedHub
from trainhub_cli.command_table import ALIASES, all_entries
from trainhub_cli.main import cli

HEAVY = "{'rich', 'http.client', 'ssl', 'json', 'yaml', 'zipfile', 'dataclasses', 'configparser'}"
LIST_WITHOUT = "{'rich', 'zipfile', 'dataclasses', 'trainhub_sdk.client', 'trainhub_sdk.run'}"
CODE = """
import sys
from trainhub_cli.__main__ import run_command
code = run_command(sys.argv[1:])
print(code, *sorted({heavy} & set(sys.modules)), file=sys.stderr)
"""


def loaded(heavy: str, *arguments: str) -> list[str]:
    """Returns the exit code, and which of the heavy modules a command has loaded."""
    argv = [sys.executable, "-c", CODE.format(heavy=heavy), *arguments]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stderr.split()


def test_help_loads_no_http_client_no_rich_and_no_command() -> None:
    assert loaded(HEAVY, "--help") == ["0"]


def test_a_list_loads_no_more_than_a_request_needs(
    scripted: tuple[ScriptedHub, str], trainhub: CommandLine
) -> None:
    scripted[0].replies = [Reply(body=b'{"results": [], "next": null}')]
    assert loaded(LIST_WITHOUT, "ls") == ["0"]
    assert [request.path for request in scripted[0].requests] == ["/api/v1/runs/?page_size=20"]


@pytest.mark.parametrize("name", [*all_entries(), *ALIASES])
def test_each_command_has_help(trainhub: CommandLine, name: str) -> None:
    result = trainhub(name, "--help")
    assert result.code == 0
    assert "Usage: trainhub" in result.out
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.name == ALIASES.get(name, name)


def test_the_help_lists_each_command(trainhub: CommandLine) -> None:
    text = trainhub("--help").out
    assert all(f"  {name} " in text for name in all_entries())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_says_how_to_install_it(trainhub: CommandLine, shell: str) -> None:
    script = trainhub("completion", shell).out
    assert re.search(rf"# To install it: .*trainhub completion {shell} > ", script)
    assert "_TRAINHUB_COMPLETE" in script
