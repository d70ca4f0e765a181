"""How this machine does, by psutil; what it cannot tell is absent, and hides nothing else."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import psutil

from trainhub_launch.metrics import MEDIUM_S
from trainhub_node.machine.infiniband import Ports
from trainhub_node.telemetry.rates import RateMeter

log = logging.getLogger(__name__)
JITTER_S = 0.5
"""A reading that is due within this time is taken now: ticks do not come to the millisecond."""
T = TypeVar("T")


class Host:
    """`folder`: whose disk is looked at. `sys`: where the kernel shows its devices."""

    def __init__(self, folder: str, *, sys: str = "/sys") -> None:
        self._folder = folder
        self._sys = sys
        self._ports = Ports(f"{sys}/class/infiniband")
        self._disk_read, self._disk_write = RateMeter(), RateMeter()
        self._tx, self._rx = RateMeter(), RateMeter()
        self._silent: set[str] = set()
        self._cpu = self._ask("CPU", _cpu_times)
        self._medium: dict[str, float] = {}
        self._medium_at = float("-inf")
        self._disks = _Physical(f"{sys}/block")
        self._interfaces = _Physical(f"{sys}/class/net")

    def read(self, now: float, interface: str = "") -> dict[str, float]:
        """HOST_METRICS as they stand. `now`: seconds of a steady clock. `interface`: whose traffic stands for
        the network's where there is no physical one, as in a container."""
        if now - self._medium_at >= MEDIUM_S - JITTER_S:
            self._medium = _known(
                {
                    "swap_used_bytes": self._ask("swap", lambda: float(psutil.swap_memory().used)),
                    "disk_free_bytes": self._ask(
                        "disk space", lambda: float(psutil.disk_usage(self._folder).free)
                    ),
                }
            ) | self._ports.rates(now)
            self._medium_at = now
        return {
            **self._medium,
            **_known(
                {
                    "cpu_pct": self._cpu_pct(),
                    "memory_used_bytes": self._ask("memory", memory_used),
                    "load_1": self._ask("load", lambda: os.getloadavg()[0]),
                    **self._of_disks(now),
                    **self._of_network(now, interface),
                }
            ),
        }

    def _cpu_pct(self) -> float | None:
        before, self._cpu = self._cpu, self._ask("CPU", _cpu_times)
        if before is None or self._cpu is None or self._cpu[1] <= before[1]:
            return None
        share = (self._cpu[0] - before[0]) / (self._cpu[1] - before[1])
        return round(100 * min(1.0, max(0.0, share)), 1)

    def _of_disks(self, now: float) -> dict[str, float | None]:
        told = self._ask("disks", lambda: psutil.disk_io_counters(perdisk=True, nowrap=False)) or {}
        disks = self._disks.of(told)
        return {
            "disk_read_bytes_s": self._disk_read.rate(now, {name: told[name].read_bytes for name in disks}),
            "disk_write_bytes_s": self._disk_write.rate(now, {name: told[name].write_bytes for name in disks}),
        }

    def _of_network(self, now: float, interface: str) -> dict[str, float | None]:
        told = self._ask("network", lambda: psutil.net_io_counters(pernic=True, nowrap=False)) or {}
        names = self._interfaces.of(told) or [name for name in (interface,) if name in told and name != "lo"]
        return {
            "network_tx_bytes_s": self._tx.rate(now, {name: told[name].bytes_sent for name in names}),
            "network_rx_bytes_s": self._rx.rate(now, {name: told[name].bytes_recv for name in names}),
        }

    def _ask(self, what: str, call: Callable[[], T]) -> T | None:
        """psutil meets many kernels and containers; whatever one of them does not show is said once and left
        out."""
        try:
            return call()
        except Exception as error:
            if what not in self._silent:
                self._silent.add(what)
                log.warning("This machine does not tell of its %s: %r", what, error)
            return None


class _Physical:
    """Which names are devices of their own: bridges, pairs, loops, volumes and arrays only pass on what those
    carry."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._seen: list[str] = []
        self._found: list[str] = []

    def of(self, names: Iterable[str]) -> list[str]:
        listed = list(names)
        if listed != self._seen:
            self._seen = listed
            self._found = [name for name in listed if self._is_physical(name)]
        return self._found

    def _is_physical(self, name: str) -> bool:
        # A virtual function below a card that counts its traffic too, as on Azure, would count twice.
        place = f"{self._folder}/{name}"
        return os.path.exists(f"{place}/device") and not os.path.exists(f"{place}/master/device")


def memory_total() -> int:
    """In bytes."""
    return int(psutil.virtual_memory().total)


def memory_used() -> float:
    """In bytes, without what the kernel would give back at once."""
    memory = psutil.virtual_memory()
    return float(memory.total - memory.available)


def _cpu_times() -> tuple[float, float]:
    """(busy, all) in seconds since boot, of all cores."""
    told = psutil.cpu_times()
    # Linux counts a guest's time as its host's user time too.
    every = sum(told) - getattr(told, "guest", 0.0) - getattr(told, "guest_nice", 0.0)
    return every - told.idle - getattr(told, "iowait", 0.0), every


def _known(told: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in told.items() if value is not None}
