"""Slurm's commands of a login node, over ssh. There `login_wrapper.py` is the forced command of the key."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from clusters.backends.slurm import login_wrapper
from clusters.backends.slurm.commands import CALL_TIMEOUT_S, call_remote
from clusters.backends.slurm.settings import CommandHost

CONNECT_TIMEOUT_S = 10
CONNECTION_IDLE_S = 60
KEY, KNOWN_HOSTS = "key", "known_hosts"


def known_hosts_text(host: CommandHost, host_key: str) -> str:
    """Returns the file of known hosts. `host_key`: lines like `ssh-ed25519 AAAA…`."""
    name = host.name if host.port == 22 else f"[{host.name}]:{host.port}"
    return "".join(f"{name} {line}\n" for line in host_key.splitlines())


def ssh_options(host: CommandHost) -> list[str]:
    """Returns the beginning of a command line that runs in the folder with `KEY` and `KNOWN_HOSTS`.

    Names of files are relative: the path of a socket must be short, and that of the folder may be long."""
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "UserKnownHostsFile": KNOWN_HOSTS,
        "GlobalKnownHostsFile": "/dev/null",
        "IdentityFile": KEY,
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "PreferredAuthentications": "publickey",
        "ConnectTimeout": str(CONNECT_TIMEOUT_S),
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
        "ForwardAgent": "no",
        "LogLevel": "ERROR",
    }
    # No file of configuration, neither of the hub's account nor of the machine.
    return [
        "ssh",
        "-F",
        "none",
        "-T",
        "-p",
        str(host.port),
        "-l",
        host.user,
        *(f"-o{name}={value}" for name, value in options.items()),
    ]


@dataclass(frozen=True)
class SshCommands:
    """`account` owns the jobs; empty for the account that logs in, which then only looks.

    `folder`, which only the hub may enter, holds the private key as `KEY` and the host's key as
    `KNOWN_HOSTS`. Calls share one connection, whose socket lies there, too: a call then costs milliseconds
    instead of a login."""

    host: CommandHost
    folder: str
    account: str = ""

    @property
    def owner(self) -> str:
        return self.account or self.host.user

    def run(self, argv: Sequence[str], stdin: str = "", timeout_s: float = CALL_TIMEOUT_S) -> str:
        sharing = {
            "ControlMaster": "auto",
            "ControlPath": "%C",
            "ControlPersist": str(CONNECTION_IDLE_S),
            "ClearAllForwardings": "yes",
        }
        options = [f"-o{name}={value}" for name, value in sharing.items()]
        # ssh joins its arguments into a line for a shell. The forced command splits it again.
        line = shlex.join([login_wrapper.NAME, self.owner, *argv])
        command = [*ssh_options(self.host), *options, "--", self.host.name, line]
        return call_remote(command, argv[0], stdin, timeout_s, self.folder)
