"""What this machine is, looked at in a thread of its own, and how it says so to the hub."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter, NetworkPort
from trainhub_node import __version__
from trainhub_node.machine import addresses, infiniband, interpreters
from trainhub_node.machine.host import memory_total
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
LOOK_S = 5.0
INVENTORY_S = 600.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Inventory:
    """What takes processes, names or a network card's firmware to find out."""

    address: str = ""
    interface: str = ""
    interpreters: tuple[Interpreter, ...] = ()
    mpi: str = ""
    ports: tuple[NetworkPort, ...] = ()


class Looker(threading.Thread):
    """Keeps the inventory up to date; `inventory` never waits."""

    def __init__(self, settings: NodeSettings) -> None:
        super().__init__(name="inventory", daemon=True)
        self._settings = settings
        self._ports = infiniband.Ports()
        self._closing = threading.Event()
        self._whole_at = float("-inf")
        for doubt in doubts(settings):
            log.warning("%s", doubt)
        self.inventory = self._placed(Inventory())

    def run(self) -> None:
        while not self._closing.is_set():
            try:
                self.inventory = self._whole(self._placed(self.inventory))
            except Exception:
                log.exception("A look at this machine failed")
            self._closing.wait(LOOK_S)

    def close(self) -> None:
        self._closing.set()

    def _placed(self, before: Inventory) -> Inventory:
        address, interface = place(self._settings, before.address)
        return replace(before, address=address, interface=interface, ports=self._ports.read())

    def _whole(self, before: Inventory) -> Inventory:
        if time.monotonic() - self._whole_at < INVENTORY_S:
            return before
        found = interpreters.find(self._settings.python, self._settings.run_as)
        self._whole_at = time.monotonic()
        return replace(before, interpreters=found, mpi=mpi_version())


class Beats:
    """Makes heartbeats of what was found and measured."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._boot_id = BOOT_ID.read_text().strip()
        self._memory_bytes = memory_total()

    def make(
        self,
        found: Inventory,
        numbers: Mapping[str, float],
        gpus: tuple[GpuFact, ...],
        *,
        driver: str,
        cuda: str,
        nvml: str,
    ) -> Heartbeat:
        settings = self._settings
        return Heartbeat(
            agent_version=__version__,
            hostname=socket.gethostname(),
            address=found.address,
            interface=found.interface,
            cores=settings.cores,
            slots=settings.slots,
            memory_bytes=self._memory_bytes,
            memory_used_bytes=int(numbers.get("memory_used_bytes", 0)),
            cpu_pct=numbers.get("cpu_pct", 0.0),
            disk_free_bytes=int(numbers.get("disk_free_bytes", 0)),
            gpus=gpus,
            interpreters=found.interpreters,
            mpi=found.mpi,
            run_as=settings.run_as.name if settings.run_as else "",
            infiniband=infiniband.are_active(found.ports),
            boot_id=self._boot_id,
            numbers=numbers,
            network_ports=found.ports,
            driver=driver,
            cuda=cuda,
            nvml=nvml,
        )


def is_news(told: Heartbeat | None, beat: Heartbeat) -> bool:
    """Whether the node is something else now than it said; how it does is no news."""
    return (
        told is None
        or any(getattr(told, name) != getattr(beat, name) for name in _INVENTORY)
        or [_device(gpu) for gpu in told.gpus] != [_device(gpu) for gpu in beat.gpus]
    )


_INVENTORY = ("interpreters", "mpi", "address", "infiniband", "driver", "cuda", "nvml", "network_ports")


def _device(gpu: GpuFact) -> tuple[object, ...]:
    return gpu.uuid, gpu.state, gpu.parent, gpu.mig


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


def place(settings: NodeSettings, before: str = "") -> tuple[str, str]:
    """The address at which other nodes reach this one, and its interface. `before`: the address until now,
    which still holds while there is no way to the hub."""
    held = addresses.by_interface().get(settings.interface, ())
    address = (
        settings.address
        or next(iter(held), "")
        or addresses.towards(settings.hub_url)
        or before
        or addresses.LOOPBACK
    )
    return address, settings.interface or addresses.interface_of(address)


def doubts(settings: NodeSettings) -> list[str]:
    """What may be wrong with the address that the operator chose, in sentences."""
    if not settings.address:
        return []
    real = addresses.interface_of(settings.address)
    if not real:
        held = ", ".join(address for found in addresses.by_interface().values() for address in found)
        return [
            (
                f"{settings.address} is none of this machine's addresses ({held}); right only behind address "
                "translation"
            )
        ]
    if settings.interface and real != settings.interface:
        return [f"{settings.address} belongs to the interface {real}, not to {settings.interface}"]
    return []
