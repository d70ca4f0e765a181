"""Metrics of this machine, by psutil. A metric that cannot be read is absent, without effect on the
others."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import psutil

from trainhub_launch.metrics import MEDIUM_S
from trainhub_node.machine.infiniband import InfinibandPorts
from trainhub_node.machine.rates import RateMeter

log = logging.getLogger(__name__)
# A reading due within this time is taken now: ticks are not exact to the millisecond.
JITTER_S = 0.5
T = TypeVar("T")


class HostMetrics:
    """Reads the metrics of this machine. `folder`: the disk to measure is the one that holds it. `sys`: the
    path of sysfs."""

    def __init__(self, folder: str, *, sys: str = "/sys") -> None:
        self._folder = folder
        self._sys = sys
        self._ports = InfinibandPorts(f"{sys}/class/infiniband")
        self._disk_read, self._disk_write = RateMeter(), RateMeter()
        self._tx, self._rx = RateMeter(), RateMeter()
        self._logged: set[str] = set()
        self._cpu = self._read_or_none("CPU", _cpu_times)
        self._medium: dict[str, float] = {}
        self._medium_at = float("-inf")
        self._disks = _PhysicalDevices(f"{sys}/block")
        self._interfaces = _PhysicalDevices(f"{sys}/class/net")

    def read(self, now: float, interface: str = "") -> dict[str, float]:
        """Returns the present HOST_METRICS. `now`: seconds of a steady clock.

        `interface`: its traffic is the network's where there is no physical interface, as in a container."""
        if now - self._medium_at >= MEDIUM_S - JITTER_S:
            self._medium = _present(
                {
                    "swap_used_bytes": self._read_or_none("swap", lambda: float(psutil.swap_memory().used)),
                    "disk_free_bytes": self._read_or_none(
                        "disk space", lambda: float(psutil.disk_usage(self._folder).free)
                    ),
                }
            ) | self._ports.rates(now)
            self._medium_at = now
        return {
            **self._medium,
            **_present(
                {
                    "cpu_pct": self._cpu_pct(),
                    "memory_used_bytes": self._read_or_none("memory", memory_used),
                    "load_1": self._read_or_none("load", lambda: os.getloadavg()[0]),
                    **self._disk_rates(now),
                    **self._network_rates(now, interface),
                }
            ),
        }

    def _cpu_pct(self) -> float | None:
        before, self._cpu = self._cpu, self._read_or_none("CPU", _cpu_times)
        if before is None or self._cpu is None or self._cpu[1] <= before[1]:
            return None
        share = (self._cpu[0] - before[0]) / (self._cpu[1] - before[1])
        # The time of waiting for I/O may decrease (proc(5)), so the share may leave the range from 0 to 1.
        return round(100 * min(1.0, max(0.0, share)), 1)

    def _disk_rates(self, now: float) -> dict[str, float | None]:
        counters = (
            self._read_or_none("disks", lambda: psutil.disk_io_counters(perdisk=True, nowrap=False)) or {}
        )
        disks = self._disks.select(counters)
        return {
            "disk_read_bytes_s": self._disk_read.rate(
                now, {name: counters[name].read_bytes for name in disks}
            ),
            "disk_write_bytes_s": self._disk_write.rate(
                now, {name: counters[name].write_bytes for name in disks}
            ),
        }

    def _network_rates(self, now: float, interface: str) -> dict[str, float | None]:
        counters = (
            self._read_or_none("network", lambda: psutil.net_io_counters(pernic=True, nowrap=False)) or {}
        )
        names = self._interfaces.select(counters) or [
            name for name in (interface,) if name in counters and name != "lo"
        ]
        return {
            "network_tx_bytes_s": self._tx.rate(now, {name: counters[name].bytes_sent for name in names}),
            "network_rx_bytes_s": self._rx.rate(now, {name: counters[name].bytes_recv for name in names}),
        }

    def _read_or_none(self, subject: str, call: Callable[[], T]) -> T | None:
        """Returns the result of the call, or None if it fails. psutil runs on many kernels and containers, so
        a failure is logged once and does not affect other metrics."""
        try:
            return call()
        except Exception as error:
            if subject not in self._logged:
                self._logged.add(subject)
                log.warning("The %s of this machine cannot be read: %r", subject, error)
            return None


class _PhysicalDevices:
    """Selects the physical ones among device names: bridges, pairs, loops, volumes and arrays only repeat the
    traffic of those."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: list[str] = []
        self._physical: list[str] = []

    def select(self, names: Iterable[str]) -> list[str]:
        current = list(names)
        if current != self._names:
            self._names = current
            self._physical = [name for name in current if self._is_physical(name)]
        return self._physical

    def _is_physical(self, name: str) -> bool:
        # A virtual function below a card that counts its traffic too (as on Azure) would count twice.
        path = f"{self._folder}/{name}"
        return os.path.exists(f"{path}/device") and not os.path.exists(f"{path}/master/device")


def memory_total() -> int:
    """Returns the memory of this machine in bytes."""
    return int(psutil.virtual_memory().total)


def memory_used() -> float:
    """Returns the used memory in bytes, without memory that the kernel can reclaim at once."""
    memory = psutil.virtual_memory()
    return float(memory.total - memory.available)


def _cpu_times() -> tuple[float, float]:
    """Returns (busy, total) seconds since boot over all cores."""
    times = psutil.cpu_times()
    # Linux also counts a guest's time as user time of its host.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return total - times.idle - getattr(times, "iowait", 0.0), total


def _present(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
