"""The cause of a failed run as the header of its page shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from jobs import causes
from jobs.causes import Cause
from jobs.causes.cause_selection import group_reasons
from jobs.causes.reasons import WITHOUT_CAUSE
from jobs.display.log_titles import file_title
from jobs.environment_findings.failure_remedies import failure_remedy
from jobs.models import Attempt, Member, Run
from jobs.states import MemberState, RunState

# States of a failing run in which other ranks may still be running.
STILL_THERE = (RunState.PREPARING, RunState.RUNNING, RunState.FINALIZING)


@dataclass(frozen=True)
class CauseView:
    """The cause of a failure, prepared for the template.

    `is_ending`: other ranks may still be running. `groups`: (reason, ranks) of the other ranks that ended.
    `link`: (URL, label) of the page where the remedy is applied, or None."""

    cause: Cause
    is_ending: bool
    groups: list[tuple[str, str]]
    link: tuple[str, str] | None

    @property
    def log_title(self) -> str:
        """The name of the quoted log as the Logs tab shows it."""
        return f"Rank {self.cause.rank}" if self.cause.rank is not None else file_title(self.cause.log)

    @property
    def at(self) -> datetime | None:
        return datetime.fromisoformat(self.cause.at) if self.cause.at else None


def cause_view(run: Run, *, may_change: bool) -> CauseView | None:
    """Returns the cause to show below the run's header, or None unless the run has failed or is failing.
    `may_change`: whether the reader may make a version of an environment."""
    cause = causes.for_run(run)
    if cause is None:
        return None
    groups = group_reasons([(other.rank, other.why) for other in cause.others])
    return CauseView(cause, run.state in STILL_THERE, groups, _link(run, cause, may_change=may_change))


def _link(run: Run, cause: Cause, *, may_change: bool) -> tuple[str, str] | None:
    remedy = failure_remedy(run, cause) if may_change else None
    if remedy is not None:
        return remedy.link, remedy.action
    if cause.link == "node" and cause.node:
        return reverse("node", args=[cause.node]), f"Node {cause.node}"
    return (reverse("environments"), "Environments") if cause.link == "environments" else None


def first_failed(run: Run, attempt: int, members: Iterable[Member]) -> Member | None:
    """Returns the rank that caused the failure of the attempt, or None.

    If the stored cause names no rank, this is the failed rank that ended first."""
    # A cancel stops ranks with signals, so failed ranks of a canceled run explain nothing.
    if attempt == run.attempt and run.state in WITHOUT_CAUSE:
        return None
    rows = list(members)
    stored = Attempt.objects.filter(run=run, number=attempt).values_list("cause", flat=True).first()
    named = [member for member in rows if stored and member.rank == stored["rank"]]
    failed = [member for member in rows if member.state == MemberState.FAILED]
    return next(iter(named or sorted(failed, key=_when)), None)


def _when(member: Member) -> tuple[bool, float, int]:
    return (member.ended_at is None, member.ended_at.timestamp() if member.ended_at else 0.0, member.rank)
