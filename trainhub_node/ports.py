"""Ports that a run may use as MASTER_PORT and the like."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterable, Mapping
from typing import Any

FIRST = 6105
MOST = 64
_NUMBERS = re.compile(r"(?<![\w.])\d{4,5}(?![\w.])")


def free(held: Collection[int], count: int = MOST) -> list[int]:
    """`count` ports, ascending from 6105, that nobody listens on and no living attempt was given."""
    found: list[int] = []
    for port in range(FIRST, 32768):
        if port not in held and _bindable(port):
            found.append(port)
            if len(found) == count:
                break
    return found


def named_in(command: Mapping[str, Any], offered: Iterable[int]) -> set[int]:
    """Which of the offered ports the order makes use of: those that its processes are told in some variable."""
    told: set[int] = set()
    for process in command["processes"]:
        for value in process["env"].values():
            if isinstance(value, str):
                told |= {int(number) for number in _NUMBERS.findall(value)}
    return told & set(offered)


def _bindable(port: int) -> bool:
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104 - anyone's listener counts
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                # As the run's own listener will: connections that linger from an earlier run do not count.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((address, port))
        except OSError as error:
            if family == socket.AF_INET6 and error.errno in (97, 99):  # the machine has no IPv6
                continue
            return False
    return True
