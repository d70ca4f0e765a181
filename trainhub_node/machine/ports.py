"""Ports that a run may use as MASTER_PORT and the like."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

FIRST_PORT = 6105
MAX_PORTS = 64
_FAMILY = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
_NUMBERS = re.compile(r"(?<![\w.])\d{4,5}(?![\w.])")


def find_free(
    reserved: Collection[int], count: int = MAX_PORTS, *, acquire: Callable[[int], bool] = lambda _port: True
) -> list[int]:
    """Returns up to `count` ports from 6105 upwards on which nobody listens and which are not reserved.

    `acquire` may refuse a port."""
    free: list[int] = []
    for port in range(FIRST_PORT, 32768):
        if port not in reserved and _can_bind(port) and acquire(port):
            free.append(port)
            if len(free) == count:
                break
    return free


def used_ports(command: Mapping[str, Any], offered: Iterable[int]) -> set[int]:
    """Returns those of the offered ports that occur in a variable of the order's processes."""
    numbers: set[int] = set()
    for process in command["processes"]:
        for value in process["env"].values():
            if isinstance(value, str):
                numbers |= {int(number) for number in _NUMBERS.findall(value)}
    return numbers & set(offered)


def _can_bind(port: int) -> bool:
    """Returns whether no process listens on the port, at any address."""
    with socket.socket(_FAMILY, socket.SOCK_STREAM) as probe:
        if _FAMILY == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # As the run's own listener does: lingering connections of an earlier run do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
