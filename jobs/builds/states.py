"""The states of a build."""

from __future__ import annotations

from enum import StrEnum


class BuildState(StrEnum):
    """QUEUED -> BUILDING -> BUILT | FAILED | CANCELED; a build that no node has taken up may also end."""

    QUEUED = "queued"
    BUILDING = "building"
    BUILT = "built"
    FAILED = "failed"
    CANCELED = "canceled"


class BuildPurpose(StrEnum):
    """INSTALL: the node gets ready for runs. MAKE: it makes what a version consists of, and uploads it."""

    INSTALL = "install"
    MAKE = "make"


UNFINISHED = (BuildState.QUEUED, BuildState.BUILDING)
