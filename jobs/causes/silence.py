"""When the ranks of a run that hung wrote their last output."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.causes.evidence import Evidence
from jobs.logs.log_timestamps import LogTimeline
from jobs.models import Run, RunEvent
from jobs.states import RunState

MIN_SILENCE_S = 60
# Ranks that wait for one that hangs stop writing within one step, so smaller differences mean nothing.
MIN_LEAD_S = 5


def was_silent(run: Run, weighed: Sequence[Evidence]) -> bool:
    """Returns whether no rank wrote anything for the last half of the time limit, at least for a minute."""
    stopped_at, last = _stopped_at(run), _last_outputs(run, weighed)
    if stopped_at is None or not last:
        return False
    limit_s = float(run.facts.get("seconds") or 0)
    return stopped_at - max(last.values()) >= max(MIN_SILENCE_S, limit_s / 2)


def first_to_fall_silent(run: Run, weighed: Sequence[Evidence]) -> str:
    """Returns a sentence that names the rank whose output ended clearly before that of all others, or ""."""
    stopped_at = _stopped_at(run)
    last = sorted((at, rank) for rank, at in _last_outputs(run, weighed).items())
    if stopped_at is None or len(last) < 2 or last[1][0] - last[0][0] < MIN_LEAD_S:
        return ""
    at, rank = last[0]
    node = next(item.rank.node for item in weighed if item.rank.rank == rank)
    return (
        f"Rank {rank} on {node} fell silent first, {last[1][0] - at:.0f} s before the next; the others "
        f"probably waited for it."
    )


def _stopped_at(run: Run) -> float | None:
    """Returns when the time limit ended the run (Unix seconds), None if it did not. What the ranks write
    after that, such as a framework's line about SIGTERM, is no progress."""
    started = RunEvent.objects.filter(run=run, attempt=run.attempt, to_state=RunState.RUNNING).last()
    seconds = run.facts.get("seconds")
    if run.finished_at is None:
        return None
    if started is None or not seconds:
        return run.finished_at.timestamp()
    return min(run.finished_at.timestamp(), started.at.timestamp() + float(seconds))


def _last_outputs(run: Run, weighed: Sequence[Evidence]) -> dict[int, float]:
    """Returns rank -> when its last output arrived before the run was stopped (Unix seconds by the hub's
    clock), of ranks that wrote any."""
    stopped_at = _stopped_at(run)
    result = {}
    for item in weighed:
        try:
            timeline = LogTimeline.load(run.pk, run.attempt, item.rank.log)
        except (FileNotFoundError, NotADirectoryError):
            continue
        last_ms = timeline.last_ms if stopped_at is None else timeline.last_before(round(stopped_at * 1000))
        if last_ms:
            result[item.rank.rank] = last_ms / 1000
    return result
