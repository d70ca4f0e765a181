"""Words for an attempt that node and hub share: its phases, the states of its ranks, why it is stopped."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """How far one node is with its part of an attempt, in the order in which it gets there."""

    ACCEPTED = "accepted"
    PREPARING = "preparing"
    READY = "ready"
    RUNNING = "running"
    UPLOADING = "uploading"
    DONE = "done"


PHASES = tuple(Phase)


class RankState(StrEnum):
    """One rank as its node knows it."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


# The supervisor of an attempt lives as long as its ranks and must not load `enum`: its modules write the
# values of Phase, StopReason and ErrorKind as strings. tests/node/supervisor/test_states.py compares them.


class StopReason(StrEnum):
    """Why a node ends its part of an attempt. DISK: see ErrorKind. SERVED: every deciding rank has succeeded,
    and those on this node only serve. OUTSIDE: the scheduler that lent the node has told it to end."""

    CANCELED = "canceled"
    PREEMPTED = "preempted"
    TIMEOUT = "timeout"
    GANG = "gang"
    ORPHAN = "orphan"
    SERVED = "served"
    DISK = "disk"
    OUTSIDE = "outside"


class ErrorKind(StrEnum):
    """The step that failed where a node could not prepare, start or finish its part of an attempt. DISK_LIMIT
    and DISK_FULL: it ended its part because of what that wrote."""

    ENVIRONMENT = "environment"
    SNAPSHOT = "snapshot"
    DATA = "data"
    LAUNCH = "launch"
    UPLOAD = "upload"
    INTERNAL = "internal"
    DISK_LIMIT = "disk_limit"
    DISK_FULL = "disk_full"


class CheckpointSign(StrEnum):
    """By what a checkpoint shows that it is complete. RENAMED: it got its name when it was whole. METADATA:
    the file `.metadata`, which torch.distributed.checkpoint writes last. LATEST: DeepSpeed's file `latest`
    names it. MARKER: a file `.complete` in it. NONE: nothing but that nobody writes to it any more."""

    RENAMED = "renamed"
    METADATA = "metadata"
    LATEST = "latest"
    MARKER = "marker"
    NONE = ""
