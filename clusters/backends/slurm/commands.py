"""How Slurm's commands are called: on this machine, as the hub or as somebody's account."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from clusters.backends.slurm.errors import SlurmError, SlurmFault, failed_call, missing_command

CALL_TIMEOUT_S = 30.0
# No others: the environment of the hub holds its secrets, and sbatch gives its environment to the job.
PASSED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "SLURM_CONF")
ROOT = "root"
# All times as seconds since 1970, whatever the zone of the machine and the format that people chose there.
TIME_FORMAT = ("SLURM_TIME_FORMAT", "%s")


_FOLDER_GONE = "The settings of the login node were changed meanwhile; TrainHub asks again."


class SlurmCommands(Protocol):
    @property
    def owner(self) -> str:
        """The account that runs the commands, and whose are the jobs that sbatch queues."""

    def run(self, argv: Sequence[str], stdin: str = "", timeout_s: float = CALL_TIMEOUT_S) -> str:
        """Returns what the command wrote to standard output. Raises SlurmError."""


@dataclass(frozen=True)
class LocalCommands:
    """Commands of this machine.

    `account` is the Unix account to run them as, for which the hub must be root; empty for the hub's own."""

    account: str = ""

    @property
    def owner(self) -> str:
        if self.account:
            return self.account
        return pwd.getpwuid(os.geteuid()).pw_name if os.geteuid() else ROOT

    def run(self, argv: Sequence[str], stdin: str = "", timeout_s: float = CALL_TIMEOUT_S) -> str:
        env = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        person = self._person()
        if person is not None:
            env |= {"HOME": person.pw_dir, "USER": person.pw_name, "LOGNAME": person.pw_name}
        return _call(argv, env | dict([TIME_FORMAT]), stdin, timeout_s=timeout_s, person=person)

    def _person(self) -> pwd.struct_passwd | None:
        """Returns the account to change to, or None if it is the hub's own."""
        if not self.account:
            return None
        try:
            person = pwd.getpwnam(self.account)
        except (KeyError, ValueError):
            raise SlurmError(
                SlurmFault.NO_ACCOUNT,
                f"This machine has no account {self.account!r}. Make it, or map the person to another one.",
            ) from None
        # Also by another name than root's.
        if person.pw_uid == 0:
            raise SlurmError(SlurmFault.NO_ACCOUNT, "TrainHub runs nothing of a person as root.")
        if person.pw_uid == os.geteuid():
            return None
        if os.geteuid() != 0:
            raise SlurmError(
                SlurmFault.NO_ACCOUNT,
                f"The hub does not run as root, so it cannot run commands as {self.account}. Use a login "
                "node over ssh instead.",
            )
        return person


def _start_error(error: OSError, program: str, folder: str) -> SlurmError:
    if not isinstance(error, FileNotFoundError):
        return SlurmError(SlurmFault.NO_COMMAND, f"{program} could not be started: {error.strerror}.")
    if error.filename == folder:
        return SlurmError(SlurmFault.UNREACHABLE, _FOLDER_GONE)
    return missing_command(program)


def call_remote(ssh: Sequence[str], program: str, stdin: str, timeout_s: float, folder: str) -> str:
    """Run an ssh command line, in this folder, that runs `program` on another machine. Raises SlurmError."""
    # The agent of whoever started the hub must not offer its keys.
    env = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    return _call(ssh, env, stdin, timeout_s=timeout_s, remote_program=program, folder=folder)


def _call(
    argv: Sequence[str],
    env: Mapping[str, str],
    stdin: str,
    *,
    timeout_s: float,
    person: pwd.struct_passwd | None = None,
    remote_program: str = "",
    folder: str = "/",
) -> str:
    program = remote_program or argv[0]
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(env),
            # A group of its own, so that a call that times out ends with its children.
            start_new_session=True,
            user=person.pw_uid if person else None,
            group=person.pw_gid if person else None,
            extra_groups=os.getgrouplist(person.pw_name, person.pw_gid) if person else None,
        )
    except OSError as error:
        raise _start_error(error, argv[0], folder) from error
    with process:
        try:
            output, errors = process.communicate(stdin.encode(), timeout_s)
        except subprocess.TimeoutExpired:
            raise SlurmError(
                SlurmFault.TIMEOUT,
                f"{program} gave no answer within {timeout_s:g} s. Slurm's controller or the login node may "
                f"be overloaded, or the network lost packets; TrainHub asks again.",
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode:
        raise failed_call(
            program, process.returncode, errors.decode(errors="replace"), is_remote=bool(remote_program)
        )
    return output.decode(errors="replace")
