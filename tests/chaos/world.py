"""The installation: PostgreSQL, a hub on a small disk, and hosts with simulated GPUs whose clocks can be
set."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.harness import guard
from tests.hosts.bench import Host, Hosts, HostsHub
from tests.hosts.unhealthy import build_clock
from tests.hosts.wiring import ip
from tests.hosts.worlds import world
from tests.hub import Hub, eventually
from tests.platform.database import Database

HOSTS = 4
# Room for the logs of half an hour.
DISK_MIB, MIB = 1024, 2**20
SETTINGS = {"NODE_UNREACHABLE_AFTER": "4", "NODE_LOST_AFTER": "15"}


class ChaosHost(Host):
    """A machine whose clock can be set; it is right at first."""

    def boot(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.set_clock(behind_s=0)
        library = self.folder / "clock.so"
        if not library.exists():
            build_clock(library)
        super().boot()

    def join(self, hub: HostsHub, python: str) -> None:
        super().join(hub, python)
        self.settings["LD_PRELOAD"] = "/tmp/clock.so"

    def set_clock(self, *, behind_s: int) -> None:
        aside = self.folder / "aside"
        aside.write_text(f"{behind_s}\n")
        aside.replace(self.folder / "seconds_behind")

    def slow(self, kilobits: int) -> None:
        """What arrives at it comes at this rate; the kernel of some machines has no other shaper."""
        subprocess.run(["tc", "qdisc", "del", "dev", self.link, "root"], check=False, capture_output=True)
        rate = ("rate", f"{kilobits}kbit", "burst", "16kb", "latency", "400ms")
        subprocess.run(["tc", "qdisc", "add", "dev", self.link, "root", "tbf", *rate], check=True)

    def quicken(self) -> None:
        subprocess.run(["tc", "qdisc", "del", "dev", self.link, "root"], check=False, capture_output=True)

    def agent_lives(self) -> bool:
        with suppress(AssertionError):
            return self.agent_pid() > 0
        return False


class ChaosHosts(Hosts):
    """`start` builds all; `stop` removes it. `database`: where the hub keeps its rows."""

    hosts: list[ChaosHost]  # type: ignore[assignment]  # nobody puts others in
    host_type = ChaosHost
    # Of each hub, which it starts again by itself.
    parts: tuple[str, ...] = ("web", "worker", "valkey")

    def __init__(self, folder: Path, python: str) -> None:
        self.database = Database(Path("/tmp") / f"trainhub-chaos-{os.getpid()}-{secrets.token_hex(3)}")
        settings = {**SETTINGS, "DATABASE_URL": self.database.url}
        super().__init__(folder, python, HOSTS, settings, [world(number) for number in range(HOSTS)])
        self._folder, self._disk = folder, folder / "data"
        self._mounts: list[Path] = []
        # Each with parts that can be killed.
        self.hubs: list[Hub] = [self.hub]

    def start_hub(self) -> None:
        self.mount_disk()
        self.database.start()
        super().start_hub()

    def mount_disk(self) -> None:
        self.mount(self._disk, DISK_MIB)

    def mount(self, folder: Path, mib: int) -> None:
        """A disk of this size at `folder`, which is gone with the installation."""
        folder.mkdir(parents=True)
        guard.on_exit("umount", "-l", str(folder))
        options = f"size={mib}m,mode=700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "chaos", str(folder)], check=True)
        self._mounts.append(folder)

    def stop(self) -> None:
        try:
            super().stop()
        finally:
            self.database.remove()
            for folder in reversed(self._mounts):
                subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)

    def fill_disk(self, *, free_bytes: int) -> None:
        """Leaves the hub about this much of its disk, on which others write meanwhile."""
        fill(self._disk, free_bytes)

    def empty_disk(self) -> None:
        empty(self._disk)

    def save_logs(self, target: Path) -> None:
        """Those of all parts, which the disks of the installation take with them."""
        for hub in self.hubs:
            copied = target / hub.own_folder.name
            shutil.copytree(hub.own_folder / "logs", copied, dirs_exist_ok=True)
            shutil.copyfile(hub.console, copied / "console.log")
        for host in self.hosts:
            if host.agent_log.exists():
                shutil.copyfile(host.agent_log, target / f"{host.name}.log")

    def check_files(self) -> None:
        """Fails if stored files are elsewhere than they belong."""

    def mend(self) -> None:
        """Everything is whole again, and every host is ready."""
        self.empty_disk()
        for host in self.hosts:
            host.quicken()
            host.set_clock(behind_s=0)
            ip("link", "set", host.link, "up")
            if not host.up:
                host.boot()
            if not host.agent_lives():
                host.start_agent()
        eventually(self.hub.answers, 60, "the hub answers")
        for host in self.hosts:
            self.until(host, "ready", seconds=90)


def fill(disk: Path, free_bytes: int) -> None:
    facts = os.statvfs(disk)
    size = max(0, facts.f_bavail * facts.f_frsize - free_bytes)
    # Without a buffer, which would still be written as the file is closed, to a disk that others have filled.
    with (disk / "full").open("wb", buffering=0) as file, suppress(OSError):
        while size > 0:
            size -= file.write(b"x" * min(size, MIB))


def empty(disk: Path) -> None:
    (disk / "full").unlink(missing_ok=True)
