"""States of an allocation. Pure."""

from __future__ import annotations

from enum import StrEnum


class AllocationState(StrEnum):
    """WANTED: to be submitted. QUEUED: Slurm has it. GRANTED: its nodes are there, or come. OVER: it holds
    and waits for nothing any more."""

    WANTED = "wanted"
    QUEUED = "queued"
    GRANTED = "granted"
    OVER = "over"


# From -> allowed to. Back to QUEUED: Slurm has put the job back into its queue. Back to WANTED: the job was
# lost before the attempt had started.
TRANSITIONS = {
    AllocationState.WANTED: frozenset({AllocationState.QUEUED, AllocationState.OVER}),
    AllocationState.QUEUED: frozenset({AllocationState.GRANTED, AllocationState.OVER}),
    AllocationState.GRANTED: frozenset({AllocationState.QUEUED, AllocationState.OVER}),
    AllocationState.OVER: frozenset({AllocationState.WANTED}),
}
