"""A bridge in this machine with network namespaces on it; all names carry a prefix of this process's own."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path

from tests.harness import guard

ETC = Path("/etc/netns")
HUB = 254


def ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr.strip()} (needs root and iproute2)"
    return done.stdout


class Bridge:
    """`number` counts machines from 1; the hub is at `hub_address`, in the namespace of the tests
    themselves."""

    def __init__(self, machines: int) -> None:
        self.machines = range(1, machines + 1)
        self._mark = secrets.token_hex(2)
        self._net = free_net()
        self.name = f"th{self._mark}br"
        self.hub_address = self.address(HUB)

    def build(self) -> None:
        for command in self._removal():
            guard.on_exit(*command)
        ip("link", "add", self.name, "type", "bridge")
        ip("addr", "add", f"{self.hub_address}/24", "dev", self.name)
        ip("link", "set", self.name, "up")
        for number in self.machines:
            space = self.namespace(self.host_name(number))
            ip("netns", "add", space)
            ip("link", "add", self.link(number), "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", self.link(number), "master", self.name, "up")
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", space, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            ip("-n", space, "route", "add", "default", "via", self.hub_address)
            self._write_etc(space)

    def remove(self) -> None:
        for command in self._removal():
            subprocess.run(command, capture_output=True, check=False)

    def _removal(self) -> list[list[str]]:
        commands = []
        for number in self.machines:
            space = self.namespace(self.host_name(number))
            commands.append(["ip", "netns", "del", space])
            commands.append(["ip", "link", "del", self.link(number)])
            commands.append(["rm", "-rf", str(ETC / space)])
        return [*commands, ["ip", "link", "del", self.name]]

    def address(self, number: int) -> str:
        return f"{self._net}.{number}"

    def host_name(self, number: int) -> str:
        return f"gpu-{'abcdefgh'[number - 1]}"

    def namespace(self, host_name: str) -> str:
        return f"th{self._mark}-{host_name}"

    def link(self, number: int) -> str:
        return f"th{self._mark}v{number}"

    def _write_etc(self, space: str) -> None:
        """Names resolve from the file alone: where a name server never answers, each look-up takes 10 s."""
        folder = ETC / space
        folder.mkdir(parents=True)
        names = "".join(f"{self.address(number)} {self.host_name(number)}\n" for number in self.machines)
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        (folder / "resolv.conf").write_text("# none\n")
        switch = Path("/etc/nsswitch.conf")
        lines = switch.read_text().splitlines() if switch.exists() else ["hosts:"]
        local = ["hosts: files" if line.startswith("hosts:") else line for line in lines]
        (folder / "nsswitch.conf").write_text("\n".join(local) + "\n")


def free_net() -> str:
    """The first three numbers of an IPv4 network that no interface of this machine is in."""
    accepted = ip("-4", "addr")
    while f" {(net := f'10.{secrets.choice(range(64, 120))}.{secrets.choice(range(256))}')}." in accepted:
        continue
    return net
