"""A real sshd on the controller's machine, set up as the page of a cluster says."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

from clusters.backends.slurm.settings import CommandHost
from clusters.backends.slurm.ssh_commands import KEY, KNOWN_HOSTS, SshCommands, known_hosts_text
from clusters.slurm_partitions.login_node import LoginNode
from tests.environments.source_builds.ssh_server import RUN_FOLDER, make_key
from tests.hosts import processes
from tests.hub import eventually
from tests.slurm.cluster import STARTED_S, SlurmCluster

PORT = 2222
# The hub's account there, one of the system. People's accounts are those of the machine.
ACCOUNT, UID, GROUP = "trainhub", 991, "team"
# What the setup changes is the machine's own.
OWN_FOLDERS = ("/home", "/etc/sudoers.d", "/usr/local/sbin", "/srv")


class LoginHost:
    """`files` is the folder with what the hub has for ssh."""

    def __init__(self, cluster: SlurmCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.machine = cluster.controller
        self.host = CommandHost(ACCOUNT, self.machine.address, PORT)
        self.host_key = cluster.folder / "host-key"
        self._shown_key = cluster.folder / "shown-host-key"
        make_key(self.host_key)
        self.files = self.files_with(folder / "login files")

    def start(self) -> LoginHost:
        program = shutil.which("sshd", path="/usr/sbin:/usr/bin")
        assert program, "sshd is not installed; .ci/system-packages installs it"
        assert shutil.which("sudo"), "sudo is not installed; .ci/system-packages installs it"
        RUN_FOLDER.mkdir(mode=0o755, exist_ok=True)
        for folder in OWN_FOLDERS:
            self.machine.run("mount", "-t", "tmpfs", "-o", "mode=755", "none", folder)
        self._add_account()
        shutil.copyfile(self.host_key, self._shown_key)
        self._shown_key.chmod(0o600)
        for account in (ACCOUNT, "ada"):
            self.machine.run("install", "-d", "-o", account, f"/home/{account}")
        self.set_up(self.settings(self.files))
        options = {
            "Port": PORT,
            "ListenAddress": self.machine.address,
            "HostKey": self._shown_key,
            "PasswordAuthentication": "no",
            "UsePAM": "no",
            "PidFile": "none",
            # As the page asks for the relay; it has longer times.
            "GatewayPorts": "clientspecified",
            "ClientAliveInterval": 3,
            "ClientAliveCountMax": 2,
            # As people set them in their login files; the hub's calls must not be misled.
            "SetEnv": f"SLURM_CONF={self.cluster.layout.conf} SBATCH_PARTITION=closed SQUEUE_USERS=hub",
        }
        log = self.cluster.folder / "log" / "sshd.out"
        arguments = [f"-o{name}={value}" for name, value in options.items()]
        self.machine.spawn(log, program, "-D", "-e", "-f", "/dev/null", *arguments)
        eventually(lambda: b"listening" in log.read_bytes(), STARTED_S, "sshd listens")
        return self

    def settings(self, files: Path, cluster: str = "hpc", account: str = ACCOUNT) -> LoginNode:
        """What the page of a cluster says, whose key is the one of these files; of another account than the
        hub's own, without a group."""
        public = " ".join((files / f"{KEY}.pub").read_text().split()[:2])
        host = replace(self.host, user=account)
        return LoginNode(cluster, host, public, self.host_key_line(), GROUP if account == ACCOUNT else "")

    def set_up(self, login: LoginNode) -> None:
        """As its operator would."""
        self.run_setup(login.setup, login.wrapper, "root" if login.group else login.host.user)

    def run_setup(self, commands: str, wrapper: str, account: str) -> None:
        switch = f"setpriv --reuid={account} --regid={account} --init-groups env HOME=$(echo ~{account})"
        lines = f"cd /srv && cat > trainhub-login <<'FILE'\n{wrapper}FILE\n{switch} sh -e <<'LINES'\n"
        self.machine.run("sh", "-ec", f"{lines}{commands}LINES")

    def files_with(self, folder: Path, host_key: str = "") -> Path:
        """A folder for ssh with a key of its own."""
        folder.mkdir(mode=0o700)
        make_key(folder / KEY)
        line = host_key or self.host_key_line()
        (folder / KNOWN_HOSTS).write_text(known_hosts_text(self.host, line))
        return folder

    def host_key_line(self) -> str:
        return " ".join(self.host_key.with_suffix(".pub").read_text().split()[:2])

    def commands(self, account: str = "", files: Path | None = None) -> SshCommands:
        """Those of a person, or of the hub's own account, which only looks."""
        return SshCommands(self.host, str(files or self.files), account)

    def block(self) -> None:
        """The hub gets no answer from here any more; Slurm's nodes do."""
        self.machine.run("ip", "route", "add", "blackhole", f"{self.cluster.hub_address}/32")

    def unblock(self) -> None:
        self.machine.run("ip", "route", "del", "blackhole", f"{self.cluster.hub_address}/32")

    def show_host_key(self, key: Path) -> None:
        """Show this key from the next connection on, and end those that there are."""
        shutil.copyfile(key, self._shown_key)
        os.kill(self.machine.pid_of("sshd: /usr/sbin/sshd -D"), signal.SIGHUP)
        for pid in self.machine.pids():
            if processes.command(pid).startswith(f"sshd: {ACCOUNT}"):
                os.kill(pid, signal.SIGTERM)

    def _add_account(self) -> None:
        """In place: the machine's files are mounted over those of the computer."""
        lines = {
            "passwd": f"{ACCOUNT}:x:{UID}:{UID}::/home/{ACCOUNT}:/bin/sh",
            "group": f"{ACCOUNT}:x:{UID}:",
            "shadow": f"{ACCOUNT}:*:20000:0:99999:7:::",
        }
        script = ["cp -p /etc/shadow /srv/shadow", "mount --bind /srv/shadow /etc/shadow"]
        for name, line in lines.items():
            # The computer may have an account of this name, as where TrainHub is installed.
            script.append(f"grep -v '^{ACCOUNT}:' /etc/{name} > /srv/{name}.new")
            script.append(f"echo '{line}' >> /srv/{name}.new && cat /srv/{name}.new > /etc/{name}")
        self.machine.run("sh", "-ec", "\n".join(script))
