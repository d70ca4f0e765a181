"""A real sshd on the controller's machine, where people log in with keys."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from clusters.backends.slurm import login_wrapper
from clusters.backends.slurm.settings import CommandHost
from clusters.backends.slurm.ssh_commands import SshCommands
from tests.environments.source_builds.ssh_server import RUN_FOLDER, make_key
from tests.hub import eventually
from tests.node.accounts import PEOPLE
from tests.slurm.cluster import STARTED_S, SlurmCluster

PORT = 2222


class LoginNode:
    """`key` opens the accounts of all people, and as root the wrapper for members of the group `team`."""

    def __init__(self, cluster: SlurmCluster, folder: Path, control_folder: str) -> None:
        self.cluster, self.folder, self.control_folder = cluster, folder, control_folder
        self.key, self.host_key = folder / "key", cluster.folder / "host-key"
        make_key(self.key)
        make_key(self.host_key)
        self.known_hosts = folder / "known_hosts"
        self.name_host_key(self.host_key)

    def start(self) -> LoginNode:
        program = shutil.which("sshd", path="/usr/sbin:/usr/bin")
        assert program, "sshd is not installed; .ci/system-packages installs it"
        RUN_FOLDER.mkdir(mode=0o755, exist_ok=True)
        authorized = self.cluster.folder / "authorized-keys"
        authorized.mkdir()
        public = self.key.with_suffix(".pub").read_text()
        wrapper = self.cluster.folder / "trainhub-login"
        shutil.copyfile(login_wrapper.__file__, wrapper)
        forced = f'restrict,command="/usr/bin/python3 -I {wrapper} team" '
        for account in (*PEOPLE, "root"):
            (authorized / account).write_text(forced * (account == "root") + public)
        options = {
            "Port": PORT,
            "ListenAddress": self.cluster.controller.address,
            "HostKey": self.host_key,
            "AuthorizedKeysFile": f"{authorized}/%u",
            "PermitRootLogin": "forced-commands-only",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "UsePAM": "no",
            "PidFile": "none",
            # As people set them in their login files; the hub's calls must not be misled.
            "SetEnv": f"SLURM_CONF={self.cluster.layout.conf} SBATCH_PARTITION=closed SQUEUE_USERS=hub",
        }
        log = self.cluster.folder / "log" / "sshd.out"
        arguments = [f"-o{name}={value}" for name, value in options.items()]
        self.cluster.controller.spawn(log, program, "-D", "-e", "-f", "/dev/null", *arguments)
        eventually(lambda: b"listening" in log.read_bytes(), STARTED_S, "sshd listens")
        return self

    def name_host_key(self, key: Path) -> None:
        """Let this be the key that the hub expects."""
        kind, public = key.with_suffix(".pub").read_text().split()[:2]
        self.known_hosts.write_text(f"[{self.cluster.controller.address}]:{PORT} {kind} {public}\n")

    def commands(
        self, account: str = "ada", *, key: Path | None = None, control_folder: str = ""
    ) -> SshCommands:
        host = CommandHost(account, self.cluster.controller.address, PORT)
        return SshCommands(host, str(key or self.key), str(self.known_hosts), control_folder)

    def wrapped(self, person: str) -> SshCommands:
        """As the hub's key gets in where the wrapper is its forced command."""
        return replace(self.commands("root", control_folder=self.control_folder), person=person)
