"""InfiniBand and RoCE ports, as the kernel lists them in /sys/class/infiniband."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from trainhub_launch.machine import NetworkPort
from trainhub_node import proc
from trainhub_node.machine.rates import RateMeter

FOLDER = "/sys/class/infiniband"
# port_xmit_data and port_rcv_data count in words (PortCounters of the InfiniBand specification, 16.1.3.5).
WORD_BYTES = 4
# Where the 32-bit counter of an old adapter stops.
MAX_COUNTER = 2**32 - 1


class InfinibandPorts:
    """Reads the InfiniBand ports below `folder`: the kernel's, or one with the same layout."""

    def __init__(self, folder: str = FOLDER) -> None:
        self._folder = folder
        self._tx, self._rx = RateMeter(), RateMeter()

    def read(self) -> tuple[NetworkPort, ...]:
        return tuple(_port(device, number, path) for device, number, path in self._paths())

    def rates(self, now: float) -> dict[str, float]:
        """Returns bytes per second over all ports; unknown rates are absent. `now`: seconds of a steady
        clock."""
        paths = [path for _, _, path in self._paths()]
        if not paths:
            return {}
        rates = {
            "infiniband_tx_bytes_s": self._tx.rate(now, _byte_counts(paths, "port_xmit_data")),
            "infiniband_rx_bytes_s": self._rx.rate(now, _byte_counts(paths, "port_rcv_data")),
        }
        return {name: rate for name, rate in rates.items() if rate is not None}

    def _paths(self) -> Iterator[tuple[str, int, str]]:
        for device in _names(self._folder):
            ports = f"{self._folder}/{device}/ports"
            for number in _names(ports):
                if number.isdigit():
                    yield device, int(number), f"{ports}/{number}"


def has_active_port(ports: Iterable[NetworkPort]) -> bool:
    return any(port.state == "ACTIVE" for port in ports)


def _port(device: str, number: int, path: str) -> NetworkPort:
    # "4: ACTIVE"
    state = _text(f"{path}/state").rpartition(":")[2].strip()
    return NetworkPort(
        device, number, state, rate=_text(f"{path}/rate"), link_layer=_text(f"{path}/link_layer")
    )


def _byte_counts(paths: Iterable[str], counter: str) -> dict[str, int]:
    """Returns path of the port -> bytes of the counter. Ports without a valid counter are absent."""
    texts = {path: _text(f"{path}/counters/{counter}") for path in paths}
    return {
        path: int(text) * WORD_BYTES
        for path, text in texts.items()
        if text.isdigit() and int(text) != MAX_COUNTER
    }


def _text(path: str) -> str:
    return (proc.read(path) or b"").decode(errors="replace").strip()


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
