from __future__ import annotations

from enum import StrEnum


class NodeStatus(StrEnum):
    """How a node stands, worked out from its silence; never stored."""

    READY = "ready"
    UNREACHABLE = "unreachable"
    LOST = "lost"
    NEW = "new"
    REVOKED = "revoked"


class GpuStanding(StrEnum):
    """How a GPU stands, worked out from its holder and its latest numbers; never stored.

    `idle`: a run holds it and does not use it. `foreign`: no run holds it, and a process of somebody else
    uses it."""

    FREE = "free"
    BUSY = "busy"
    IDLE = "idle"
    FOREIGN = "foreign"
    LOST = "lost"
