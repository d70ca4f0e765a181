from __future__ import annotations

from enum import StrEnum


class ProbeState(StrEnum):
    """Of one machine in a test: WAITING -> TESTING -> OK | FAILED | CANCELED. SKIPPED: it has nothing to
    test there."""

    WAITING = "waiting"
    TESTING = "testing"
    OK = "ok"
    FAILED = "failed"
    CANCELED = "canceled"
    SKIPPED = "skipped"


UNFINISHED = (ProbeState.WAITING, ProbeState.TESTING)
