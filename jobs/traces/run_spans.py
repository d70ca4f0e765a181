"""What happened to a run, and when, as the spans of its trace. No OpenTelemetry here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.models import Attempt, Member, Run
from jobs.states import RunState
from jobs.views.timeline import phases

# A trace of thousands of ranks would be refused by collectors, and nobody could read it.
MAX_RANKS = 256
Attributes = dict[str, str | int | bool]


@dataclass(frozen=True)
class RunSpan:
    """A stretch of time in the road of a run. `error`: why it failed; "" = it did not."""

    name: str
    start: datetime
    end: datetime
    attributes: Attributes = field(default_factory=dict)
    error: str = ""


def root_span(run: Run) -> RunSpan:
    """Returns the span of the whole run, from its submission to its end. `run` is over."""
    return RunSpan(
        f"run {run.number}",
        run.created_at,
        max(run.created_at, run.finished_at or run.state_since),
        {
            "trainhub.run.id": run.pk,
            "trainhub.run.number": run.number,
            "trainhub.run.name": run.display_name,
            "trainhub.run.state": run.state,
            "trainhub.run.reason": run.reason,
            "trainhub.run.attempts": run.attempt,
            "trainhub.workspace": run.workspace.slug,
            "trainhub.experiment": run.experiment.name,
            "enduser.id": run.created_by.username if run.created_by else "",
        },
        run.sentence if run.state == RunState.FAILED else "",
    )


def inner_spans(run: Run) -> Iterator[RunSpan]:
    """Yields what happened within the run: its states, the claims of its nodes, and its ranks."""
    whole = root_span(run)
    for phase in phases(run.created_at, run.events.exclude(to_state=""), whole.end):
        attributes: Attributes = {"trainhub.attempt": phase.attempt} if phase.attempt else {}
        yield RunSpan(phase.word, phase.since, phase.since + timedelta(seconds=phase.seconds), attributes)
    for attempt in run.attempts.order_by("number"):
        yield from _claims(attempt)
    ranks = Member.objects.filter(attempt__run=run).exclude(started_at=None).select_related("node", "attempt")
    for member in ranks.order_by("attempt__number", "rank")[:MAX_RANKS]:
        yield _rank(member, whole.end)


def _claims(attempt: Attempt) -> Iterator[RunSpan]:
    parts = attempt.parts.exclude(claimed_at=None).select_related("node").order_by("node_rank")
    for part in parts:
        if part.claimed_at is not None:
            yield RunSpan(
                f"placed → claimed by {part.node.name}",
                attempt.created_at,
                max(attempt.created_at, part.claimed_at),
                {"trainhub.node": part.node.name, "trainhub.attempt": attempt.number},
            )


def _rank(member: Member, end: datetime) -> RunSpan:
    """Returns the span of a rank that has started; without a known end it lasts until that of the run."""
    start = member.started_at or end
    attributes: Attributes = {
        "trainhub.node": member.node.name,
        "trainhub.attempt": member.attempt.number,
        "trainhub.rank": member.rank,
        "trainhub.gpus": len(member.gpus),
    }
    if member.exit_code is not None:
        attributes["process.exit.code"] = member.exit_code
    error = f"exit code {member.exit_code}" if member.exit_code else ""
    if member.signal:
        attributes["trainhub.signal"] = member.signal
        error = f"signal {member.signal}"
    return RunSpan(
        f"rank {member.rank} on {member.node.name}",
        start,
        max(start, member.ended_at or end),
        attributes,
        error,
    )
