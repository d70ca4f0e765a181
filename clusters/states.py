from __future__ import annotations

from enum import StrEnum


class NodeStatus(StrEnum):
    """The status of a node, derived from its silence and never stored."""

    READY = "ready"
    UNREACHABLE = "unreachable"
    LOST = "lost"
    NEW = "new"
    REVOKED = "revoked"


class GpuUsage(StrEnum):
    """The usage of a GPU, derived from its lease and its latest numbers and never stored.

    `idle`: a run holds it but does not use it. `foreign`: no run holds it, but a process uses it.
    `unhealthy`: a critical alert about it fires, whether a run holds it or not."""

    FREE = "free"
    BUSY = "busy"
    IDLE = "idle"
    FOREIGN = "foreign"
    LOST = "lost"
    UNHEALTHY = "unhealthy"
