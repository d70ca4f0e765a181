"""A real sshd on a free port of the loopback that serves the repositories of a folder by git alone."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hub import eventually, free_port
from trainhub.up.children import end_with_parent

# The folder of its privileges, without which it does not start.
RUN_FOLDER = Path("/run/sshd")


class SshServer:
    """`key`: the private deploy key that may read; `host_key`: the line for a file of known hosts."""

    def __init__(self, folder: Path, repositories: Path) -> None:
        self.folder, self.repositories = folder, repositories
        self.port = free_port()
        self.key = make_key(folder / "deploy")
        make_key(folder / "host")
        public = (folder / "host.pub").read_text().split()
        self.host_key = f"[127.0.0.1]:{self.port} {public[0]} {public[1]}\n"

    def url(self, name: str) -> str:
        """With the secret DEPLOY_KEY."""
        return (
            f"ssh://{getpass.getuser()}:${{DEPLOY_KEY}}@127.0.0.1:{self.port}{self.repositories}/{name}.git"
        )

    @contextmanager
    def serving(self) -> Iterator[SshServer]:
        program = shutil.which("sshd", path="/usr/sbin:/usr/bin")
        assert program, "sshd is not installed; .ci/system-packages installs it"
        if os.geteuid() == 0:
            RUN_FOLDER.mkdir(mode=0o755, exist_ok=True)
        # As hosts of repositories do it: git is all that this key may run.
        shell = 'command="git-shell -c \\"$SSH_ORIGINAL_COMMAND\\"",restrict'
        (self.folder / "authorized").write_text(f"{shell} {(self.folder / 'deploy.pub').read_text()}")
        options = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.folder / "host",
            "AuthorizedKeysFile": self.folder / "authorized",
            "StrictModes": "no",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "yes",
            "UsePAM": "no",
            "PidFile": "none",
        }
        argv = [program, "-D", "-f", "/dev/null", *(f"-o{name}={value}" for name, value in options.items())]
        with (self.folder / "sshd.log").open("wb") as log:
            server = subprocess.Popen(
                [*argv, "-e"],
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
            )
        try:
            eventually(lambda: b"listening" in (self.folder / "sshd.log").read_bytes(), what="sshd listens")
            yield self
        finally:
            server.terminate()
            server.wait(20)


def make_key(path: Path, passphrase: str = "") -> str:
    """Makes a pair of keys, and returns the private one."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path.read_text()
