"""Slurm's states of a job, and what each means for a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class JobPhase(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDING = "ending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    LOST = "lost"
    UNKNOWN = "unknown"


FINAL_PHASES = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.CANCELED, JobPhase.LOST})


@dataclass(frozen=True)
class SlurmState:
    """`word` is Slurm's own, `sentence` what it means for the run."""

    word: str
    phase: JobPhase
    sentence: str

    @property
    def is_final(self) -> bool:
        return self.phase in FINAL_PHASES


_P = JobPhase
# Every state of Slurm 22.05 that squeue or sacct prints. A run is lost if it ended through no fault of its
# own: it may be tried again.
_TABLE = (
    ("PENDING", _P.WAITING, "Waits in Slurm's queue."),
    ("REQUEUED", _P.WAITING, "Slurm puts the job back into its queue."),
    ("REQUEUE_FED", _P.WAITING, "Slurm moves the job to another cluster of the federation."),
    ("REQUEUE_HOLD", _P.WAITING, "Slurm put the job back into its queue and holds it."),
    ("RESV_DEL_HOLD", _P.WAITING, "Slurm holds the job, because its reservation was deleted."),
    ("SPECIAL_EXIT", _P.WAITING, "Was put back into the queue, and waits for its owner to release it."),
    ("CONFIGURING", _P.STARTING, "Has its nodes, which start or are made ready."),
    ("RUNNING", _P.RUNNING, "Runs."),
    ("RESIZING", _P.RUNNING, "Runs while Slurm changes its number of nodes."),
    ("SIGNALING", _P.RUNNING, "Runs while Slurm sends it a signal."),
    ("SUSPENDED", _P.SUSPENDED, "Slurm has stopped its processes; others may have its processors."),
    ("STOPPED", _P.SUSPENDED, "Slurm stopped its processes with SIGSTOP; it keeps its processors."),
    ("COMPLETING", _P.ENDING, "Its processes end, and Slurm cleans its nodes up."),
    ("STAGE_OUT", _P.ENDING, "Has ended; its files are copied from a burst buffer."),
    ("COMPLETED", _P.COMPLETED, "Ended with exit code 0."),
    ("FAILED", _P.FAILED, "Ended with another exit code than 0."),
    ("TIMEOUT", _P.FAILED, "Reached its time limit, and Slurm ended it. Submit it with a longer one."),
    ("DEADLINE", _P.FAILED, "Could not end before its deadline, so Slurm ended it."),
    ("OUT_OF_MEMORY", _P.FAILED, "Used more memory than it had asked for, and was ended. Ask for more."),
    ("CANCELLED", _P.CANCELED, "Was canceled in Slurm."),
    ("NODE_FAIL", _P.LOST, "One of its nodes failed."),
    ("BOOT_FAIL", _P.LOST, "One of its nodes could not be started."),
    ("PREEMPTED", _P.LOST, "Had to make room for a job of higher priority."),
    ("REVOKED", _P.LOST, "Another cluster of the federation has taken the job."),
)  # fmt: skip
STATES = {word: SlurmState(word, phase, sentence) for word, phase, sentence in _TABLE}
# A job that ends within its grace period ends in Slurm as its script did.
_AFTER_GRACE = {
    STATES["RUNNING"]: STATES["COMPLETING"],
    STATES["COMPLETED"]: STATES["PREEMPTED"],
    STATES["FAILED"]: STATES["PREEMPTED"],
    STATES["TIMEOUT"]: STATES["PREEMPTED"],
}
_CANCELED_BY = re.compile(r"CANCELLED by ([0-9]+)")


def parse_state(text: str) -> tuple[SlurmState, int | None]:
    """Returns the state, and for sacct's `CANCELLED by 1000` the number of that account.

    A word that this table lacks, as a newer Slurm may write it, is a state of the phase UNKNOWN."""
    canceled_by = _CANCELED_BY.fullmatch(text.strip())
    if canceled_by:
        return STATES["CANCELLED"], int(canceled_by[1])
    # sacct of some versions marks what it shortened.
    word = text.strip().rstrip("+")
    return STATES.get(word) or SlurmState(word, JobPhase.UNKNOWN, f"Slurm calls its state {word}."), None


def grace_state(state: SlurmState) -> SlurmState:
    """Returns the state of a job that Slurm has told to make room, where Slurm itself shows another one."""
    return _AFTER_GRACE.get(state, state)
