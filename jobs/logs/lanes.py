"""The logs of one attempt as lanes on one clock, the hub's: who writes each, what came last, and when nothing
came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from jobs.logs import log_store
from jobs.logs.log_timestamps import Gap, Timeline
from jobs.models import Attempt, Member, Run
from jobs.states import MEMBER_FINAL

MOST_TAILS = 512
TAIL_BYTES = 2048
SHORTEST_GAP_MS = 5_000
GAPS_PER_SPAN = 80
"""A silence shorter than this part of the whole clock could not be seen on it."""
UNLIKE_ITSELF = 4
"""A pause is a silence where it is so many times as long as this log's pauses mostly are."""
MOST_GAPS = 24


@dataclass(frozen=True)
class Lane:
    """`name` is the log; `member` the process that writes it, where it is one's own log. Times are the hub's,
    in ms.

    `from_ms`, `to_ms`: the life of the process; None where it has not begun or ended. `written_ms`: its last
    byte.
    `least_ms`: how long it must pause to be called silent.
    """

    name: str
    size: int
    tail: bytes = b""
    member: Member | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    written_ms: int | None = None
    gaps: tuple[Gap, ...] = ()
    least_ms: int = SHORTEST_GAP_MS


@dataclass(frozen=True)
class Lanes:
    """`ranks`: one lane per process in order of rank; `others`: the logs that are no process's own.

    The clock reaches from the first start to the last end, or to `now_ms` while one runs. `failed`: who
    failed first."""

    ranks: tuple[Lane, ...]
    others: tuple[Lane, ...]
    from_ms: int
    to_ms: int
    now_ms: int
    failed: Lane | None = None

    @property
    def all(self) -> tuple[Lane, ...]:
        return (*self.ranks, *self.others)

    @property
    def span_s(self) -> float:
        return max(1, self.to_ms - self.from_ms) / 1000

    @property
    def failed_s(self) -> float | None:
        """When the first failure was, in seconds of the clock."""
        return (
            None
            if self.failed is None or self.failed.to_ms is None
            else (self.failed.to_ms - self.from_ms) / 1000
        )


def lanes(run: Run, attempt: int, members: Sequence[Member], failed: Member | None) -> Lanes:
    """Those of an attempt now. `failed`: the process that failed first, if any."""
    now_ms = _ms(timezone.now()) or 0
    sizes = log_store.names(run.pk, attempt) if attempt else {}
    over_at = Attempt.objects.filter(run=run, number=attempt).values_list("ended_at", flat=True).first()
    own = {member.log_name: member for member in members}
    lives = {name: (_ms(member.started_at), _ended_ms(member, over_at)) for name, member in own.items()}
    from_ms, to_ms = _span(lives.values(), now_ms)
    least_ms = max(SHORTEST_GAP_MS, (to_ms - from_ms) // GAPS_PER_SPAN)
    names = [*own, *(name for name in sizes if name not in own)]
    bare = [Lane(name, sizes.get(name, 0), member=own.get(name)) for name in names]
    found = [
        _lane(lane, (run.pk, attempt), lives.get(lane.name), least_ms, is_read=index < MOST_TAILS)
        for index, lane in enumerate(bare)
    ]
    ranks, others = found[: len(own)], found[len(own) :]
    first = next((lane for lane in ranks if failed is not None and lane.name == failed.log_name), None)
    return Lanes(tuple(ranks), tuple(others), from_ms, to_ms, now_ms, first)


def _lane(
    lane: Lane,
    of: tuple[str, int],
    life: tuple[int | None, int | None] | None,
    least_ms: int,
    *,
    is_read: bool,
) -> Lane:
    began, ended = life or (None, None)
    if not lane.size or not is_read:
        return replace(
            lane, from_ms=began, to_ms=ended, gaps=_gaps(None, began, ended, least_ms), least_ms=least_ms
        )
    times = Timeline.of(*of, lane.name)
    least_ms = max(least_ms, UNLIKE_ITSELF * times.rhythm_ms())
    return replace(
        lane,
        tail=log_store.read(*of, lane.name, max(0, lane.size - TAIL_BYTES), TAIL_BYTES),
        from_ms=began,
        to_ms=ended,
        written_ms=times.last_ms,
        gaps=_gaps(times, began, ended, least_ms),
        least_ms=least_ms,
    )


def _span(lives: Iterable[tuple[int | None, int | None]], now_ms: int) -> tuple[int, int]:
    begun = [(began, ended) for began, ended in lives if began is not None]
    if not begun:
        return now_ms, now_ms
    return min(began for began, _ in begun), max(now_ms if ended is None else ended for _, ended in begun)


def _ended_ms(member: Member, over_at: datetime | None) -> int | None:
    """A lost process has no end of its own: nothing of it is heard after the attempt's."""
    return _ms(member.ended_at or (over_at if member.state in MEMBER_FINAL else None))


def _gaps(times: Timeline | None, began: int | None, ended: int | None, least_ms: int) -> tuple[Gap, ...]:
    """The longest silences of a process, in order, the one before its end included; the present one is the
    reader's to count."""
    if began is None:
        return ()
    found = times.gaps(least_ms, since_ms=began) if times else []
    last = max(began, times.last_ms if times else 0)
    if ended is not None and ended - last >= least_ms:
        found.append(Gap(last, ended, unheard=False))
    return tuple(sorted(sorted(found, key=lambda gap: gap.from_ms - gap.to_ms)[:MOST_GAPS]))


def _ms(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)
