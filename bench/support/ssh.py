"""What people do by hand on several hosts: an sshd on each, and mpirun, torchrun or plain processes over
it."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from functools import partial
from pathlib import Path

from tests.hosts.machine import Machine
from tests.hub import eventually

PORT = 2222
SERVER = f"""
Port {PORT}
HostKey /tmp/ssh/host_key
AuthorizedKeysFile /tmp/ssh/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
"""
CLIENT = f"""
Host *
  Port {PORT}
  User root
  IdentityFile /tmp/ssh/key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""
SSH = ("ssh", "-F", "/tmp/ssh/config")


class Shells:
    """An sshd on every machine, all with the same key. `folder` is any for making it."""

    def __init__(self, machines: list[Machine], folder: Path, python: str) -> None:
        self.machines = machines
        self.head = machines[0]
        self.bin = Path(python).parent
        self._key = folder / "key"

    def start(self) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._key], check=True)
        for machine in self.machines:
            place = machine.folder / "ssh"
            place.mkdir()
            for name, text in (("sshd_config", SERVER), ("config", CLIENT), ("key", self._key.read_text())):
                (place / name).write_text(text)
                (place / name).chmod(0o600)
            (place / "host_key").write_text(self._key.read_text())
            (place / "host_key").chmod(0o600)
            (place / "key.pub").write_text(self._key.with_suffix(".pub").read_text())
            machine.spawn(
                machine.folder / "sshd.log", "/usr/sbin/sshd", "-D", "-e", "-f", "/tmp/ssh/sshd_config"
            )
        for machine in self.machines:
            eventually(partial(self._answers, machine), 10, f"sshd of {machine.name}")

    def mpirun(self, program: tuple[str, ...], each: int) -> list[str]:
        hosts = ",".join(f"{machine.address}:{each}" for machine in self.machines)
        options = [
            "--allow-run-as-root",
            "--mca",
            "plm_rsh_agent",
            " ".join(SSH),
            "--host",
            hosts,
            "--bind-to",
            "none",
        ]
        options += ["--mca", "oob_tcp_if_include", "eth0", "--mca", "btl_tcp_if_include", "eth0"]
        return ["mpirun", *options, "-np", str(each * len(self.machines)), *program]

    def torchrun(self, program: tuple[str, ...], each: int, port: int) -> list[str]:
        """One on every machine, started at the same time."""
        return self._everywhere(
            [
                [
                    str(self.bin / "torchrun"),
                    "--nnodes",
                    str(len(self.machines)),
                    "--node_rank",
                    str(rank),
                    "--nproc_per_node",
                    str(each),
                    "--master_addr",
                    self.head.address,
                    "--master_port",
                    str(port),
                    *program,
                ]
                for rank in range(len(self.machines))
            ]
        )

    def _everywhere(self, commands: list[list[str]]) -> list[str]:
        lines = [
            shlex.join([*SSH, machine.address, shlex.join(["env", "GLOO_SOCKET_IFNAME=eth0", *command])])
            for machine, command in zip(self.machines, commands, strict=True)
        ]
        return ["sh", "-c", " & ".join(lines) + " & wait"]

    def until_lines(self, command: list[str], count: int) -> float:
        """Seconds from the command, given on the head, to `count` lines of output; waits for its end."""
        started = time.monotonic()
        process = subprocess.Popen(
            self.head.inside(*command),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
        )
        assert process.stdout is not None
        for _ in range(count):
            if not process.stdout.readline():
                raise RuntimeError(f"{command} ended early: {process.communicate()[1].decode()}")
        took = time.monotonic() - started
        process.communicate()
        return took

    def _answers(self, machine: Machine) -> bool:
        return self.head.run(*SSH, machine.address, "true", check=False).returncode == 0
