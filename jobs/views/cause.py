"""Why a run failed, as the first thing its page says: the rank that failed first, its words, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jobs import logstore
from jobs.models import Member, Run
from jobs.states import MemberState, Reason, RunState
from jobs.views.excerpt import Excerpt, excerpt

TAIL_BYTES = 256 * 1024
BUILD_LOG = "20_environment_build_log.txt"
PREPARATION_LOG = "55_preparation_log.txt"
LOG_OF_REASON: dict[str, str] = {
    Reason.ENVIRONMENT_FAILED: BUILD_LOG,
    Reason.SNAPSHOT_FAILED: PREPARATION_LOG,
    Reason.LAUNCH_FAILED: PREPARATION_LOG,
}
REMEDIES: dict[str, str] = {
    Reason.EXITED: "Correct the script and clone the run; everything else is kept as it was.",
    Reason.SIGNALED: "The signal came from the program itself or from outside TrainHub; the log's last lines may say why.",
    Reason.OUT_OF_MEMORY: "Use fewer processes a node, fewer data loader workers or a smaller batch, or a node with more memory.",
    Reason.TIMED_OUT: "Clone the run with a longer time limit, or save checkpoints into outputs/ and continue from them.",
    Reason.NODE_LOST: "Look whether the machine and its agent run; when the node reports again, clone the run.",
    Reason.NEVER_STARTED: "Look whether the node's agent runs and reaches the broker, then clone the run.",
    Reason.ENVIRONMENT_FAILED: "The build log says which package could not be had; correct the environment and clone the run.",
    Reason.SNAPSHOT_FAILED: "Look at the node's free disk, then clone the run.",
    Reason.LAUNCH_FAILED: "The preparation log says what was tried.",
    Reason.UPLOAD_FAILED: "The logs are complete; the outputs still lie in the run's folder on the node.",
    Reason.DOES_NOT_FIT: "Ask for fewer GPUs or processes, or choose another cluster, in a clone of the run.",
    Reason.ORPHANED: "The node was probably started anew; clone the run.",
    Reason.INTERNAL: "This is not the script's fault. Clone the run, and tell the operator if it happens again.",
}

REMEDIES_OF_SIGNALS = {
    "SIGKILL": "Mostly the kernel's own, for lack of memory: try fewer processes a node or a smaller batch.",
    "SIGTERM": "Somebody outside TrainHub ended it: an operator, a service manager, or the script itself.",
    "SIGSEGV": "A native library crashed: mostly packages of the environment that were not built for each other.",
    "SIGABRT": "A native library gave up; what it said last is in the log.",
    "SIGBUS": "Memory shared through a file was not there: mostly /dev/shm or the disk is full.",
    "SIGFPE": "A native library divided by zero; what it said last is in the log.",
}


@dataclass(frozen=True)
class Cause:
    """`member` is the process that failed first, where one did; `log` the log that `excerpt` is quoted from."""

    sentence: str
    remedy: str
    member: Member | None = None
    log: str = ""
    excerpt: Excerpt | None = None
    others: int = 0


def cause(run: Run, members: Iterable[Member]) -> Cause | None:
    """What to say under the header of `run`; None unless it failed."""
    if run.state != RunState.FAILED:
        return None
    rows = list(members)
    member = first_failed(rows, run.facts)
    log = member.log_name if member else LOG_OF_REASON.get(run.reason, "")
    quote = _tail_excerpt(run, log) if log else None
    others = sum(1 for row in rows if row.state == MemberState.FAILED and row is not member)
    return Cause(run.sentence, _remedy(run), member, log if quote else "", quote, others)


def _remedy(run: Run) -> str:
    own = REMEDIES_OF_SIGNALS.get(run.facts.get("signal", "")) if run.reason == Reason.SIGNALED else None
    return own or REMEDIES.get(run.reason, "")


def first_failed(members: Iterable[Member], facts: dict[str, Any]) -> Member | None:
    """The rank that the reason names, else the earliest to fail of its own accord (not stopped with the gang)."""
    failed = [member for member in members if member.state == MemberState.FAILED]
    named = [member for member in failed if member.rank == facts.get("rank")]
    return next(iter(named or sorted(failed, key=_when)), None)


def _when(member: Member) -> tuple[bool, float, int]:
    return (member.ended_at is None, member.ended_at.timestamp() if member.ended_at else 0.0, member.rank)


def _tail_excerpt(run: Run, name: str) -> Excerpt | None:
    size = logstore.size(run.pk, run.attempt, name)
    start = max(0, size - TAIL_BYTES)
    tail = logstore.read(run.pk, run.attempt, name, start, TAIL_BYTES)
    if start:
        # The first line of the piece is cut off.
        first = tail.find(b"\n") + 1
        tail, start = tail[first:], start + first
    return excerpt(tail, start)
