"""What programs that run code of packages may not: connect to anything, where this account can forbid that,
and run for longer than was allowed."""

from __future__ import annotations

import fcntl
import socket
import struct
import time

from trainhub_node.isolation import syscalls
from trainhub_node.supervisor.gang import PreparationFailed

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
LOOPBACK = struct.Struct("16sh14x")


class CodeLimits:
    """`limit_s`: how long all programs together may run from now on. `has_network`: whether they may
    connect."""

    def __init__(self, limit_s: float, *, has_network: bool) -> None:
        self._limit_s = limit_s
        self._has_network = has_network
        self._deadline = time.monotonic() + limit_s

    def check(self) -> None:
        """Raises PreparationFailed if the time is over."""
        if time.monotonic() > self._deadline:
            raise PreparationFailed(
                "environment",
                f"Building took longer than {self._limit_s:.0f} s, the limit of this installation "
                "(ENVIRONMENT_BUILD_TIMEOUT). Ask an operator to raise it.",
            )

    def enter(self) -> None:
        """Moves this forked process, which is about to become the program, to a network of its own, which has
        only the loopback device. Raises OSError."""
        if self._has_network:
            return
        syscalls.unshare(syscalls.CLONE_NEWNET)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            request = LOOPBACK.pack(b"lo", 0)
            flags = LOOPBACK.unpack(fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
            fcntl.ioctl(control, SIOCSIFFLAGS, LOOPBACK.pack(b"lo", flags | IFF_UP))
