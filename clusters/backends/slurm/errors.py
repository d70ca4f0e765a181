"""What can go wrong between the hub and a Slurm, told apart by what somebody has to do about it."""

from __future__ import annotations

from enum import StrEnum

from clusters.backends.slurm import login_wrapper
from trainhub_launch.errors import LaunchError

MAX_QUOTED = 500


class SlurmFault(StrEnum):
    NO_COMMAND = "no_command"
    NO_ACCOUNT = "no_account"
    SSH_KEY = "ssh_key"
    HOST_KEY = "host_key"
    WRAPPER = "wrapper"
    UNREACHABLE = "unreachable"
    CONTROLLER_AWAY = "controller_away"
    MUNGE = "munge"
    TIMEOUT = "timeout"
    TOKEN = "token"  # noqa: S105 - a fault, no token
    VERSION = "version"
    REFUSED = "refused"
    UNREADABLE = "unreadable"


class SlurmError(LaunchError):
    """A call failed. `fault` says which part; the message is a sentence with the remedy.

    Only REFUSED is an answer of Slurm about the job. After any other fault nothing is known about jobs: those
    that ran may run on."""

    def __init__(self, fault: SlurmFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


# The first that occurs in the standard error decides: fault, the words, and the sentence with the remedy.
_Signs = tuple[tuple[SlurmFault, tuple[str, ...], str], ...]
_SSH_SIGNS: _Signs = (
    (
        SlurmFault.HOST_KEY,
        (
            "Host key verification failed",
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            "No matching host key",
            "no matching host key",
        ),
        "The login node shows another host key than the one in the cluster's settings: it has a new one, or "
        "somebody else answers in its place. Ask its administrator; if it has a new one, enter that there.",
    ),
    (
        SlurmFault.SSH_KEY,
        ("Permission denied", "Too many authentication failures", "Load key", "invalid format"),
        "The login node does not accept the hub's key. Add the line on the cluster's settings page to "
        "~/.ssh/authorized_keys of the account there.",
    ),
)
_SSH_AWAY = "The login node cannot be reached. Check its name, its port and the network between."
_ACCOUNT_REFUSED = (
    "The login node runs nothing for this account. Add it to the group that trainhub-login has, or map the "
    "person to another account."
)
_CALL_REFUSED = (
    "trainhub-login on the login node does not know this call. Copy the present file there, from the "
    "cluster's settings page."
)
_RELAY_FAILED = (
    "The nodes cannot reach the relay. Follow the steps on the cluster's settings page, and test again."
)
# What a shell, Python or sudo says in place of the wrapper.
_WRAPPER_SIGNS = (f"{login_wrapper.NAME}: ", f"{login_wrapper.NAME}': ", "sudo: ", "python3: ")
_WRAPPER_BROKEN = (
    "trainhub-login does not run on the login node. Follow the steps on the cluster's settings page: the "
    "file, the whole line in ~/.ssh/authorized_keys, and the rules of sudo."
)
_SLURM_SIGNS: _Signs = (
    (
        SlurmFault.MUNGE,
        (
            "Munge decode failed",
            "Munge encode failed",
            "munged",
            "Protocol authentication error",
            "Invalid authentication credential",
            "authentication plugin",
            # So the controller hangs up on somebody whose key is not its own.
            "Zero Bytes were transmitted or received",
        ),
        "Slurm could not check who calls. munged must run on the machine with the commands, with the key "
        "of the cluster, and the clocks must agree.",
    ),
    (
        SlurmFault.CONTROLLER_AWAY,
        (
            "Unable to contact slurm controller",
            "Socket timed out on send/recv operation",
            "Slurm backup controller in standby mode",
            "Could not establish a configuration source",
            "Connection refused",
            "No route to host",
            "DBD: Unable to connect",
            "Unable to connect to database",
            "slurm_persist_conn_open",
        ),
        "Slurm's controller (slurmctld) or its database (slurmdbd) does not answer. Jobs go on meanwhile; "
        "TrainHub asks again.",
    ),
)
_SSH_FAILED = 255
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127


def one_line(text: str) -> str:
    """Returns the end of what a program wrote as one printable line."""
    line = " ".join(text.split())[-MAX_QUOTED:]
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)


def failed_call(program: str, code: int, stderr: str, *, is_remote: bool) -> SlurmError:
    """Returns the error for a call of `program` that exited with `code`."""
    detail = f" ({program}: {one_line(stderr)})" if stderr.strip() else ""
    if is_remote and code == _SSH_FAILED:
        for fault, words, sentence in _SSH_SIGNS:
            if any(word in stderr for word in words):
                return SlurmError(fault, sentence + detail)
        return SlurmError(SlurmFault.UNREACHABLE, _SSH_AWAY + detail)
    if is_remote and any(sign in stderr for sign in _WRAPPER_SIGNS):
        return _wrapper_error(code, detail)
    if code in (_NOT_EXECUTABLE, _NOT_FOUND):
        return missing_command(program, detail)
    for fault, words, sentence in _SLURM_SIGNS:
        if any(word in stderr for word in words):
            return SlurmError(fault, sentence + detail)
    answer = one_line(stderr) or f"exit code {code}"
    return SlurmError(SlurmFault.REFUSED, f"Slurm refused: {answer}")


def _wrapper_error(code: int, detail: str) -> SlurmError:
    if code == login_wrapper.ACCOUNT_REFUSED:
        return SlurmError(SlurmFault.NO_ACCOUNT, _ACCOUNT_REFUSED + detail)
    if code == login_wrapper.RELAY_FAILED:
        return SlurmError(SlurmFault.UNREACHABLE, _RELAY_FAILED + detail)
    if code == login_wrapper.CALL_REFUSED:
        return SlurmError(SlurmFault.WRAPPER, _CALL_REFUSED + detail)
    return SlurmError(SlurmFault.WRAPPER, _WRAPPER_BROKEN + detail)


def missing_command(program: str, detail: str = "") -> SlurmError:
    return SlurmError(
        SlurmFault.NO_COMMAND,
        f"There is no command {program} on the machine that TrainHub runs Slurm's commands on. Install "
        f"Slurm's client commands there, in a folder of PATH; on a login node, in one of SEARCH_PATH in "
        f"trainhub-login.{detail}",
    )
