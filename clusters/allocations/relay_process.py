"""One ssh that lets the login node of a Slurm listen for the hub, so that nodes reach it there.

It forwards TCP and nothing more: TLS is between a node and the hub. Its command is the wrapper's `relay`,
which says whether the port can be reached at the login node's address, and ends when this process does,
because its input then ends."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from clusters.backends.slurm import login_wrapper
from clusters.backends.slurm.commands import PASSED_VARIABLES
from clusters.backends.slurm.errors import failed_call, one_line
from clusters.backends.slurm.settings import CommandHost
from clusters.backends.slurm.ssh_commands import ssh_options

# From the start of ssh to the answer of the wrapper.
STARTED_WITHIN_S = 30.0
MIN_PAUSE_S, MAX_PAUSE_S = 5.0, 60.0
END_S = 5.0
ANSWER_BYTES = 4096
_PORT_REFUSED = "remote port forwarding failed"


@dataclass(frozen=True)
class RelayPlan:
    """`listen`: name and port on the login node; `target`: those of the hub, as seen from this machine.
    `folder`: the files for ssh."""

    login: CommandHost
    folder: Path
    listen: tuple[str, int]
    target: tuple[str, int]


class RelayProcess:
    """Starts at once, and again after pauses that double as long as it does not stand. `trouble`: why it does
    not stand, "" = it does."""

    def __init__(self, plan: RelayPlan) -> None:
        self.plan = plan
        self.trouble = "It is being started."
        self._process: subprocess.Popen[bytes] | None = None
        self._pause_s = MIN_PAUSE_S
        self._next_start = 0.0
        self._start()

    def tend(self) -> None:
        """Looks at the process, and starts another one if it has ended and its pause is over."""
        process = self._process
        if process is None:
            if time.monotonic() >= self._next_start:
                self._start()
        elif process.poll() is not None:
            self._fail(self._exit_sentence(process.returncode))
        elif self.trouble and _says_that_it_stands(process):
            self.trouble, self._pause_s = "", MIN_PAUSE_S
        elif self.trouble and time.monotonic() > self._started + STARTED_WITHIN_S:
            self._fail(f"The login node gave no answer within {STARTED_WITHIN_S:g} s.")

    def close(self) -> None:
        """Ends it; the login node does not listen any more."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def _start(self) -> None:
        self._started = time.monotonic()
        # A file, because nobody reads while the relay stands.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        env = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        try:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=self.plan.folder,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            self._fail(f"ssh could not be started: {error.strerror}.")

    def _command(self) -> list[str]:
        plan = self.plan
        (host, port), (target, target_port) = plan.listen, plan.target
        options = {
            "ExitOnForwardFailure": "yes",
            "ControlMaster": "no",
            "ControlPath": "none",
            "RemoteForward": f"{_bracketed(host)}:{port} {_bracketed(target)}:{target_port}",
        }
        line = shlex.join([login_wrapper.NAME, plan.login.user, "relay", host, str(port)])
        return [
            *ssh_options(plan.login),
            *(f"-o{name}={value}" for name, value in options.items()),
            "--",
            plan.login.name,
            line,
        ]

    def _fail(self, sentence: str) -> None:
        self.close()
        self.trouble = sentence
        self._next_start = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)

    def _exit_sentence(self, code: int) -> str:
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace")
        host, port = self.plan.listen
        if _PORT_REFUSED in errors:
            return (
                f"The login node does not let the relay listen at {host}:{port}. Either the key's line there "
                "has no permitlisten for it, or sshd forbids it, or the port is in use, perhaps for another "
                f"minute by an earlier connection of the relay. ({one_line(errors)})"
            )
        return str(failed_call("relay", code, errors, is_remote=True))


def _says_that_it_stands(process: subprocess.Popen[bytes]) -> bool:
    stdout = process.stdout
    if stdout is None or not select.select([stdout], [], [], 0)[0]:
        return False
    # The first that it says is one short line.
    return os.read(stdout.fileno(), ANSWER_BYTES).startswith(login_wrapper.RELAY_STANDS.encode())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
