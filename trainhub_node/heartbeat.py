"""What this machine is and how it does, sampled once a second while something runs here."""

from __future__ import annotations

import fcntl
import logging
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from trainhub_launch.report import GpuFact, Heartbeat, Interpreter
from trainhub_node import __version__, interpreters
from trainhub_node.gpu import Gpus
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
SAMPLE_S = 1.0
IDLE_SAMPLE_S = 4.0
INVENTORY_S = 600.0
SIOCGIFADDR = 0x8915


class Sampler(threading.Thread):
    """Samples in its own thread, because a device or a slow disk may take its time; `latest` never waits."""

    def __init__(self, settings: NodeSettings, busy: Callable[[], bool]) -> None:
        super().__init__(name="sampler", daemon=True)
        self._busy = busy
        self._settings = settings
        self._gpus = Gpus()
        self._closing = threading.Event()
        self._cpu = _cpu_times()
        self._inventory_at = float("-inf")
        self._interpreters: tuple[Interpreter, ...] = ()
        self._mpi = ""
        self._latest = self._sample(self._gpus.facts())

    def latest(self) -> Heartbeat:
        return self._latest

    def run(self) -> None:
        while not self._closing.is_set():
            try:
                self._look()
                self._latest = self._sample(self._gpus.facts())
            except Exception:
                log.exception("A sample of this machine failed")
            self._closing.wait(SAMPLE_S if self._busy() else IDLE_SAMPLE_S)

    def close(self) -> None:
        self._closing.set()

    def _look(self) -> None:
        """What seldom changes and takes processes to find out."""
        if time.monotonic() - self._inventory_at < INVENTORY_S:
            return
        self._interpreters = interpreters.find(self._settings.python, self._settings.run_as)
        self._mpi = mpi_version()
        self._inventory_at = time.monotonic()

    def _sample(self, gpus: tuple[GpuFact, ...]) -> Heartbeat:
        settings = self._settings
        address, interface = _place(settings)
        memory, used = _memory()
        before, self._cpu = self._cpu, _cpu_times()
        return Heartbeat(
            agent_version=__version__, hostname=socket.gethostname(), address=address, interface=interface,
            cores=settings.cores, slots=settings.slots, memory_bytes=memory, memory_used_bytes=used,
            cpu_pct=_busy_pct(before, self._cpu), disk_free_bytes=shutil.disk_usage(settings.folder).free, gpus=gpus,
            interpreters=self._interpreters, mpi=self._mpi, run_as=settings.run_as.name if settings.run_as else "",
            infiniband=_infiniband(),
        )


def mpi_version() -> str:
    """The first line of `mpirun --version`; empty where there is none."""
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        return ""
    try:
        done = subprocess.run([mpirun, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip().splitlines() or [""])[0]


def _cpu_times() -> tuple[float, float]:
    """(busy, all) in clock ticks since boot."""
    fields = [float(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def _busy_pct(before: tuple[float, float], now: tuple[float, float]) -> float:
    passed = now[1] - before[1]
    return round(100 * (now[0] - before[0]) / passed, 1) if passed > 0 else 0.0


def _memory() -> tuple[int, int]:
    """(total, in use) in bytes."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line)
    total, available = (int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    return total, total - available


def _place(settings: NodeSettings) -> tuple[str, str]:
    """The address at which other nodes reach this one, and its interface."""
    address = settings.address or _address_towards(settings.hub_url)
    return address, settings.interface or _interface_of(address)


def _address_towards(url: str) -> str:
    """The local end of a way to the hub; no packet is sent."""
    parts = urlsplit(url)
    try:
        family, _, _, _, target = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def _interface_of(address: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                told = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # it has no IPv4 address
            if socket.inet_ntoa(told[20:24]) == address:
                return name
    return ""


def _infiniband() -> bool:
    """Whether a port is active, as the kernel says."""
    for state in Path("/sys/class/infiniband").glob("*/ports/*/state"):
        try:
            if "ACTIVE" in state.read_text():
                return True
        except OSError:
            continue
    return False
