"""Slurm's commands of a login node, over ssh."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from clusters.backends.slurm.commands import CALL_TIMEOUT_S, TIME_FORMAT, call_remote
from clusters.backends.slurm.settings import CommandHost

CONNECT_TIMEOUT_S = 10
CONNECTION_IDLE_S = 60
# A person's login files may set these. They count more than the lines of a script, or hide jobs.
UNSET_VARIABLES = (
    "SBATCH_ACCOUNT",
    "SBATCH_ARRAY_INX",
    "SBATCH_EXPORT",
    "SBATCH_GRES",
    "SBATCH_JOB_NAME",
    "SBATCH_NO_REQUEUE",
    "SBATCH_PARTITION",
    "SBATCH_QOS",
    "SBATCH_REQUEUE",
    "SBATCH_SIGNAL",
    "SBATCH_TIMELIMIT",
    "SQUEUE_ACCOUNT",
    "SQUEUE_LICENSES",
    "SQUEUE_NAMES",
    "SQUEUE_PARTITION",
    "SQUEUE_QOS",
    "SQUEUE_USERS",
)


@dataclass(frozen=True)
class SshCommands:
    """The account that logs in is the owner of the jobs, unless the login node has `login_wrapper.py` for the
    hub's key: then `person` is, and every command runs as that account.

    `key_file` holds the private key (mode 0600), `known_hosts` the file with the host's key.
    `control_folder`, which only the hub may enter, lets calls share one connection for a minute: a call then
    costs milliseconds instead of a login. Its path must be short (a socket's has at most 107 characters)."""

    host: CommandHost
    key_file: str
    known_hosts: str
    control_folder: str = ""
    person: str = ""

    @property
    def owner(self) -> str:
        return self.person or self.host.user

    def run(self, argv: Sequence[str], stdin: str = "", timeout_s: float = CALL_TIMEOUT_S) -> str:
        unset = [f"--unset={name}" for name in UNSET_VARIABLES]
        # The wrapper makes an environment of its own.
        prefix = [self.person] if self.person else ["env", *unset, "=".join(TIME_FORMAT)]
        # ssh joins its arguments into a line for the shell of the login node.
        line = shlex.join([*prefix, *argv])
        return call_remote([*self._ssh(), "--", self.host.name, line], argv[0], stdin, timeout_s)

    def _ssh(self) -> list[str]:
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": self.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
            "IdentityFile": self.key_file,
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "PreferredAuthentications": "publickey",
            "ConnectTimeout": str(CONNECT_TIMEOUT_S),
            "ServerAliveInterval": "5",
            "ServerAliveCountMax": "3",
            "ForwardAgent": "no",
            "ClearAllForwardings": "yes",
            "LogLevel": "ERROR",
        }
        if self.control_folder:
            options |= {
                "ControlMaster": "auto",
                "ControlPath": f"{self.control_folder}/%C",
                "ControlPersist": str(CONNECTION_IDLE_S),
            }
        # No file of configuration, neither of the hub's account nor of the machine.
        return [
            "ssh",
            "-F",
            "none",
            "-T",
            "-p",
            str(self.host.port),
            "-l",
            self.host.user,
            *(f"-o{name}={value}" for name, value in options.items()),
        ]
