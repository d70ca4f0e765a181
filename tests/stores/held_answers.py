"""Answers of a store that a test holds back, and lets go on."""

from __future__ import annotations

import select
import socket
import time
from typing import Protocol


class Holding(Protocol):
    hold_from: int | None


def wait_while_held(server: Holding, connection: socket.socket, offset: int) -> bool:
    """Waits until `server` lets bytes of an object from `offset` on go. Returns False if the other side has
    left meanwhile, as a client does that a test kills: what nobody reads does not count as sent."""
    is_held = False
    while server.hold_from is not None and offset >= server.hold_from:
        is_held = True
        time.sleep(0.05)
    return not (is_held and _is_left(connection))


def _is_left(connection: socket.socket) -> bool:
    ready, _, _ = select.select([connection], [], [], 0)
    try:
        return bool(ready) and not connection.recv(1, socket.MSG_PEEK)
    except ConnectionResetError:
        return True
