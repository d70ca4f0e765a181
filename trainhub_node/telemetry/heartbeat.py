"""The node's inventory (address, interpreters, MPI, InfiniBand), and the heartbeat that reports it."""

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

from trainhub_launch.machine import MOUNTS, GpuFact, Heartbeat, Interpreter, NetworkPort
from trainhub_launch.telemetry import RankRead
from trainhub_node import __version__
from trainhub_node.data import cached_lists
from trainhub_node.data.node_cache import cache_bytes, find_obstore, node_cache
from trainhub_node.data.shares.allowed_servers import NONE
from trainhub_node.data.shares.nfs_client import find_obstacle
from trainhub_node.launch.engine_trial import NOT_TRIED, EngineStatus, engine_capabilities, try_engine
from trainhub_node.launch.separation_trial import capabilities, description
from trainhub_node.machine import addresses, infiniband, interpreters
from trainhub_node.machine.host import memory_total
from trainhub_node.settings import NodeSettings

log = logging.getLogger(__name__)
REFRESH_S = 5.0
INVENTORY_S = 600.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Inventory:
    """Properties of this machine that take a process, a name look-up or a network card's firmware to read."""

    address: str = ""
    interface: str = ""
    interpreters: tuple[Interpreter, ...] = ()
    mpi: str = ""
    ports: tuple[NetworkPort, ...] = ()
    engine: EngineStatus = NOT_TRIED
    data_cache_bytes: int = 0
    data_lists: tuple[str, ...] = ()
    can_mount_nfs: bool = False


class InventoryThread(threading.Thread):
    """Refreshes the inventory in a thread of its own, so that reading `inventory` never blocks."""

    def __init__(self, settings: NodeSettings) -> None:
        super().__init__(name="inventory", daemon=True)
        self._settings = settings
        self._ports = infiniband.InfinibandPorts()
        self._data = node_cache(settings)
        self._closing = threading.Event()
        self._software_at = float("-inf")
        for warning in address_warnings(settings):
            log.warning("%s", warning)
        # The first heartbeat already needs all of it: without, the hub refuses runs, or places them badly.
        self.inventory = self._refresh_interpreters(self._refresh_often(Inventory()))

    def run(self) -> None:
        while not self._closing.is_set():
            try:
                self.inventory = self._refresh_software(self._refresh_often(self.inventory))
            except Exception:
                log.exception("The inventory of this machine could not be refreshed")
            self._closing.wait(REFRESH_S)

    def close(self) -> None:
        self._closing.set()

    def _refresh_often(self, previous: Inventory) -> Inventory:
        address, interface = network_address(self._settings, previous.address)
        network = replace(previous, address=address, interface=interface, ports=self._ports.read())
        size = cache_bytes(self._settings) if find_obstore() else 0
        return replace(network, data_cache_bytes=size, data_lists=cached_lists.cached_keys(self._data))

    def _refresh_software(self, previous: Inventory) -> Inventory:
        if time.monotonic() - self._software_at < INVENTORY_S:
            return previous
        # A trial of the engine can take two minutes.
        engine = try_engine(self._settings, previous.engine)
        self._software_at = time.monotonic()
        return replace(self._refresh_interpreters(previous), mpi=mpi_version(), engine=engine)

    def _refresh_interpreters(self, previous: Inventory) -> Inventory:
        pythons = interpreters.find_interpreters(self._settings.python, self._settings.run_as)
        return replace(previous, interpreters=pythons, can_mount_nfs=self._can_mount_nfs())

    def _can_mount_nfs(self) -> bool:
        return self._settings.nfs_servers != (NONE,) and not find_obstacle()


class HeartbeatBuilder:
    """Builds heartbeats from the inventory and the latest measurements."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._boot_id = BOOT_ID.read_text().strip()
        self._memory_bytes = memory_total()
        # The last values that could be read. One that cannot be read now is unknown, and 0 free bytes would
        # be taken for a full disk.
        self._latest: dict[str, float] = {}

    def build(
        self,
        inventory: Inventory,
        numbers: Mapping[str, float],
        gpus: tuple[GpuFact, ...],
        *,
        driver: str,
        cuda: str,
        nvml: str,
        reads: tuple[RankRead, ...] = (),
    ) -> Heartbeat:
        settings = self._settings
        self._latest.update(numbers)
        return Heartbeat(
            agent_version=__version__,
            hostname=socket.gethostname(),
            address=inventory.address,
            interface=inventory.interface,
            cores=settings.cores,
            slots=settings.slots,
            memory_bytes=self._memory_bytes,
            memory_used_bytes=int(self._latest.get("memory_used_bytes", 0)),
            cpu_pct=self._latest.get("cpu_pct", 0.0),
            disk_free_bytes=int(self._latest.get("disk_free_bytes", 0)),
            gpus=gpus,
            interpreters=inventory.interpreters,
            mpi=inventory.mpi,
            run_as=settings.run_as.name if settings.run_as else "",
            infiniband=infiniband.has_active_port(inventory.ports),
            boot_id=self._boot_id,
            numbers=numbers,
            network_ports=inventory.ports,
            driver=driver,
            cuda=cuda,
            nvml=nvml,
            capabilities=(*capabilities(settings), *engine_capabilities(inventory.engine), *_nfs(inventory)),
            separation=description(settings),
            containers=str(inventory.engine),
            data_cache_bytes=inventory.data_cache_bytes,
            data_lists=inventory.data_lists,
            reads=reads,
        )


def _nfs(inventory: Inventory) -> tuple[str, ...]:
    return (MOUNTS,) if inventory.can_mount_nfs else ()


def has_changed(previous: Heartbeat | None, current: Heartbeat) -> bool:
    """Returns whether the node's inventory differs from the one reported last. Changed measurements do not
    count."""
    return (
        previous is None
        or any(getattr(previous, name) != getattr(current, name) for name in _INVENTORY)
        or [_gpu_identity(gpu) for gpu in previous.gpus] != [_gpu_identity(gpu) for gpu in current.gpus]
    )


_INVENTORY = (
    "capabilities",
    "data_lists",
    "containers",
    "interpreters",
    "mpi",
    "address",
    "infiniband",
    "driver",
    "cuda",
    "nvml",
    "network_ports",
)


def _gpu_identity(gpu: GpuFact) -> tuple[object, ...]:
    return gpu.uuid, gpu.state, gpu.parent, gpu.mig


def mpi_version() -> str:
    """Returns the first line of `mpirun --version`, empty without mpirun."""
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        return ""
    try:
        result = subprocess.run(
            [mpirun, "--version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (result.stdout.strip().splitlines() or [""])[0]


def network_address(settings: NodeSettings, previous: str = "") -> tuple[str, str]:
    """Returns the address at which other nodes reach this one, and its interface.

    `previous`: the last address. It stays in use while there is no route to the hub."""
    candidates = addresses.by_interface().get(settings.interface, ())
    address = (
        settings.address
        or next(iter(candidates), "")
        or addresses.local_address_towards(settings.hub_url)
        or previous
        or addresses.LOOPBACK
    )
    return address, settings.interface or addresses.interface_with(address)


def address_warnings(settings: NodeSettings) -> list[str]:
    """Returns what may be wrong with the address that the operator configured, in sentences."""
    if not settings.address:
        return []
    interface = addresses.interface_with(settings.address)
    if not interface:
        existing = ", ".join(address for group in addresses.by_interface().values() for address in group)
        return [
            (
                f"{settings.address} is none of this machine's addresses ({existing}); this is right only "
                "behind address translation"
            )
        ]
    if settings.interface and interface != settings.interface:
        return [f"{settings.address} belongs to the interface {interface}, not to {settings.interface}"]
    return []
