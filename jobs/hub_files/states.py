from __future__ import annotations

from enum import StrEnum


class FetchState(StrEnum):
    """WAITING -> FETCHING -> FETCHED | FAILED. Either may be ordered again, and is then WAITING."""

    WAITING = "waiting"
    FETCHING = "fetching"
    FETCHED = "fetched"
    FAILED = "failed"


ACTIVE_FETCHES = (FetchState.WAITING, FetchState.FETCHING)
