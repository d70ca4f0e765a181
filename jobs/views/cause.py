"""The cause of a failed run as its page leads with it; and what other pages ask of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from jobs import causes
from jobs.causes import Cause
from jobs.causes.cause_selection import group_reasons
from jobs.causes.reasons import WITHOUT_CAUSE
from jobs.models import Attempt, Member, Run
from jobs.states import MemberState, RunState

STILL_THERE = (RunState.PREPARING, RunState.RUNNING, RunState.FINALIZING)


@dataclass(frozen=True)
class ShownCause:
    """`told`: the cause. `is_ending`: other ranks may still live. `groups`: the other ranks by why they
    ended.

    `link`: (address, word) of where the remedy is found.
    """

    told: Cause
    is_ending: bool
    groups: list[tuple[str, str]]
    link: tuple[str, str] | None

    @property
    def where(self) -> str:
        """`Rank 1 on gpu-b`, with the launcher's own number where one started several processes there."""
        if self.told.rank is None:
            return ""
        child = (
            f", its process {self.told.child}"
            if self.told.child is not None and self.told.role == "launcher"
            else ""
        )
        return f"Rank {self.told.rank} on {self.told.node}{child}"

    @property
    def at(self) -> datetime | None:
        return datetime.fromisoformat(self.told.at) if self.told.at else None


def shown_cause(run: Run) -> ShownCause | None:
    """What to say under the header of `run`; None unless it failed, or is about to."""
    found = causes.for_run(run)
    if found is None:
        return None
    groups = group_reasons([(other.rank, other.why) for other in found.others])
    return ShownCause(found, run.state in STILL_THERE, groups, _link(found))


def _link(cause: Cause) -> tuple[str, str] | None:
    if cause.link == "node" and cause.node:
        return reverse("node", args=[cause.node]), f"Node {cause.node}"
    return (reverse("environments"), "Environments") if cause.link == "environments" else None


def first_failed(run: Run, attempt: int, members: Iterable[Member]) -> Member | None:
    """The rank that is the cause, as far as that is known; else the earliest to fail of its own accord."""
    if attempt == run.attempt and run.state in WITHOUT_CAUSE:
        return None
    rows = list(members)
    stored = Attempt.objects.filter(run=run, number=attempt).values_list("cause", flat=True).first()
    named = [member for member in rows if stored and member.rank == stored["rank"]]
    failed = [member for member in rows if member.state == MemberState.FAILED]
    return next(iter(named or sorted(failed, key=_when)), None)


def _when(member: Member) -> tuple[bool, float, int]:
    return (member.ended_at is None, member.ended_at.timestamp() if member.ended_at else 0.0, member.rank)
