"""What this machine is and how it does, sampled once a second while something runs here."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter
from trainhub_node import __version__, addresses, interpreters
from trainhub_node.gpu import Gpus
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
SAMPLE_S = 1.0
IDLE_SAMPLE_S = 4.0
INVENTORY_S = 600.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


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
        self._address = ""
        self._boot_id = BOOT_ID.read_text().strip()
        for doubt in doubts(settings):
            log.warning("%s", doubt)
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
        self._address, interface = place(settings, self._address)
        memory, used = _memory()
        before, self._cpu = self._cpu, _cpu_times()
        return Heartbeat(
            agent_version=__version__, hostname=socket.gethostname(), address=self._address, interface=interface,
            cores=settings.cores, slots=settings.slots, memory_bytes=memory, memory_used_bytes=used,
            cpu_pct=_busy_pct(before, self._cpu), disk_free_bytes=shutil.disk_usage(settings.folder).free, gpus=gpus,
            interpreters=self._interpreters, mpi=self._mpi, run_as=settings.run_as.name if settings.run_as else "",
            infiniband=_infiniband(), boot_id=self._boot_id,
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


def place(settings: NodeSettings, before: str = "") -> tuple[str, str]:
    """The address at which other nodes reach this one, and its interface. `before`: the address until now, which
    still holds while there is no way to the hub."""
    held = addresses.by_interface().get(settings.interface, ())
    address = settings.address or next(iter(held), "") or addresses.towards(settings.hub_url) or before or addresses.LOOPBACK
    return address, settings.interface or addresses.interface_of(address)


def doubts(settings: NodeSettings) -> list[str]:
    """What may be wrong with the address that the operator chose, in sentences."""
    if not settings.address:
        return []
    real = addresses.interface_of(settings.address)
    if not real:
        held = ", ".join(address for found in addresses.by_interface().values() for address in found)
        return [f"{settings.address} is none of this machine's addresses ({held}); right only behind address translation"]
    if settings.interface and real != settings.interface:
        return [f"{settings.address} belongs to the interface {real}, not to {settings.interface}"]
    return []


def _infiniband() -> bool:
    """Whether a port is active, as the kernel says."""
    for state in Path("/sys/class/infiniband").glob("*/ports/*/state"):
        try:
            if "ACTIVE" in state.read_text():
                return True
        except OSError:
            continue
    return False
