from __future__ import annotations

from enum import StrEnum


class NodeStatus(StrEnum):
    """How a node stands, worked out from its silence; never stored."""

    READY = "ready"
    UNREACHABLE = "unreachable"
    LOST = "lost"
    NEW = "new"
    REVOKED = "revoked"
