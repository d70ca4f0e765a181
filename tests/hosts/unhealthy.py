"""Machines whose disk, memory, network port and clock the tests spoil and repair, below what the agent sees.

The agent reads what it reads on any machine: the free space of the file system that its folder is on,
/proc/meminfo, /sys/class/infiniband and the wall clock.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from simulator.build import COMPILERS
from tests.hosts.bench import Host, Hosts, HostsHub

MIB = 2**20
DISK_BYTES = 64 * MIB
PORT = "mlx5_0/1"
BEHIND_S = 60
"""More than a report can have travelled, so that the hub believes it at once. Behind, and not ahead: once the
clock is right, the hub believes that at once, too."""
# Files that the machine has instead of the kernel's, in the mounts of its own. Its other classes of devices
# stay, above all its network.
MOUNTS = f"""
mkdir -p /tmp/node /tmp/class/net
mount -t tmpfs -o size={DISK_BYTES},mode=700 node /tmp/node
mount --bind /tmp/meminfo /proc/meminfo
mount --bind /sys/class/net /tmp/class/net
mount --rbind /tmp/class /sys/class
"""


class UnhealthyHost(Host):
    """A machine whose clock nobody has set yet; all else is well at first."""

    def boot(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile("/proc/meminfo", self.folder / "meminfo")
        port = self.folder / "class" / "infiniband" / PORT.replace("/", "/ports/")
        port.mkdir(parents=True, exist_ok=True)
        (port / "rate").write_text("200 Gb/sec (4X HDR)\n")
        (port / "link_layer").write_text("InfiniBand\n")
        self._state = port / "state"
        self.set_port(active=True)
        self.set_clock(behind_s=BEHIND_S)
        build_clock(self.folder / "clock.so")
        super().boot()
        self.run("sh", "-ec", MOUNTS)

    def join(self, hub: HostsHub, python: str) -> None:
        super().join(hub, python)
        self.settings["LD_PRELOAD"] = "/tmp/clock.so"

    def fill_disk(self, *, free_bytes: int) -> None:
        self.run("fallocate", "-l", str(self._free_bytes() - free_bytes), "/tmp/node/full")

    def empty_disk(self) -> None:
        self.run("rm", "/tmp/node/full")

    def set_memory(self, *, used_percent: int) -> None:
        """What its kernel says of the memory."""
        path = self.folder / "meminfo"
        text = path.read_text()
        total = int(re.findall(r"MemTotal: +(\d+)", text)[0])
        available = total * (100 - used_percent) // 100
        changed = re.sub(r"(MemAvailable:) *\d+", rf"\1 {available:>14}", text)
        # One write in place, which never makes the file shorter: a mounted file cannot be replaced, and the
        # agent must never read half of one.
        assert len(changed) >= len(text)
        with path.open("r+") as file:
            file.write(changed)

    def set_port(self, *, active: bool) -> None:
        self._state.write_text("4: ACTIVE\n" if active else "1: DOWN\n")

    def set_clock(self, *, behind_s: int) -> None:
        aside = self.folder / "aside"
        aside.write_text(f"{behind_s}\n")
        aside.replace(self.folder / "seconds_behind")

    def _free_bytes(self) -> int:
        blocks, size = self.run("stat", "-f", "-c", "%a %S", "/tmp/node").stdout.split()
        return int(blocks) * int(size)


class UnhealthyHosts(Hosts):
    """A hub with one such machine."""

    hosts: list[UnhealthyHost]  # type: ignore[assignment]  # nobody puts others in
    host_type = UnhealthyHost


def build_clock(library: Path, behind: str = "/tmp/seconds_behind") -> None:
    """Compiles clock.c, for LD_PRELOAD. `behind`: the file with the seconds."""
    compiler = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    assert compiler, f"none of {', '.join(COMPILERS)} is here; install one, for example gcc"
    source = Path(__file__).with_name("clock.c")
    flags = (
        f'-DSECONDS_BEHIND="{behind}"',
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O2",
        "-Wall",
        "-Wextra",
        "-fPIC",
        "-shared",
    )
    subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True)
