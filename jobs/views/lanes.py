"""The logs of one attempt, each with who writes it, its last line and since when it is silent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from jobs import logstore
from jobs.models import Member, Run
from jobs.states import WAITING, RunState
from jobs.views.cause import BUILD_LOG, LOG_OF_REASON, PREPARATION_LOG, first_failed
from jobs.views.excerpt import excerpt

MOST_TAILS = 128
TAIL_BYTES = 2048
TITLES = {BUILD_LOG: "Environment", PREPARATION_LOG: "Preparation"}


@dataclass(frozen=True)
class Lane:
    """`name` is the log; `member` the process that writes it, where it is one's own log."""

    name: str
    title: str
    size: int
    last_line: str
    written_at: datetime | None
    member: Member | None = None


def lanes(run: Run, attempt: int, members: Iterable[Member]) -> list[Lane]:
    """One lane per process in order of rank, then the other logs."""
    sizes = logstore.names(run.pk, attempt) if attempt else {}
    own = {member.log_name: member for member in members}
    roles = {member.role for member in own.values()}
    names = [*own, *(name for name in sizes if name not in own)]
    out = []
    for index, name in enumerate(names):
        size, member = sizes.get(name, 0), own.get(name)
        tail, written = _end(run, attempt, name, size if index < MOST_TAILS else 0)
        title = _title(name, member, lonely=len(own) == 1, mixed=len(roles) > 1)
        out.append(Lane(name, title, size, last_line(tail), written, member))
    return out


def chosen_log(run: Run, found: list[Lane], wanted: str) -> str:
    """The log asked for; else the one that tells most now: of the rank that failed first, of the preparation, of rank 0."""
    names = {lane.name for lane in found}
    if wanted in names:
        return wanted
    ranks = [lane for lane in found if lane.member]
    others = [lane for lane in found if not lane.member and lane.size]
    if run.state == RunState.FAILED:
        failed = first_failed([lane.member for lane in ranks if lane.member], run.facts)
        name = failed.log_name if failed else LOG_OF_REASON.get(run.reason, "")
        if name in names:
            return name
    if run.state in WAITING and others:
        return max(others, key=_written).name
    if run.state == RunState.RUNNING and ranks:
        return ranks[0].name
    best = [lane for lane in found if lane.size] or found
    return best[0].name if best else ""


def last_line(tail: bytes) -> str:
    quote = excerpt(tail, 0)
    return quote.text.splitlines()[-1].strip()[:300] if quote and quote.text.strip() else ""


def _end(run: Run, attempt: int, name: str, size: int) -> tuple[bytes, datetime | None]:
    """The last bytes of a log, and when they came."""
    if not size:
        return b"", None
    written = datetime.fromtimestamp(logstore.path(run.pk, attempt, name).stat().st_mtime, UTC)
    return logstore.read(run.pk, attempt, name, max(0, size - TAIL_BYTES), TAIL_BYTES), written


def _title(name: str, member: Member | None, *, lonely: bool, mixed: bool) -> str:
    if member is None:
        return TITLES.get(name, name.removeprefix("logs/"))
    if lonely:
        return "Process"
    return f"Rank {member.rank} · {member.role}" if mixed else f"Rank {member.rank}"


def _written(lane: Lane) -> float:
    return lane.written_at.timestamp() if lane.written_at else 0.0
