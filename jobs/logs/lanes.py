"""The logs of one attempt as lanes on the hub's clock: the process that writes each log, its last lines, and
its silences."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from jobs.logs import archived_logs, log_store
from jobs.logs.archived_logs import LogPart
from jobs.logs.log_timestamps import LogSilence, LogTimeline
from jobs.models import Attempt, Member, Run
from jobs.states import MEMBER_FINAL
from workspaces.object_store.errors import StoreUnavailable

log = logging.getLogger(__name__)
# Each tail costs two more files to read: the log and its arrival times.
MAX_TAILS = 512
TAIL_BYTES = 2048
MIN_GAP_MS = 5_000
# Shorter silences, relative to the whole time span, would be too narrow to see.
GAPS_PER_SPAN = 80
# A pause counts as a silence if it is this many times as long as the log's median pause.
MIN_GAP_TO_RHYTHM = 4
MAX_GAPS = 24


@dataclass(frozen=True)
class Lane:
    """One log. `member`: the process that writes it, or None for a log that belongs to no rank.

    All times are milliseconds by the hub's clock. `from_ms`, `to_ms`: start and end of the process, None
    before they happen. `written_ms`: arrival of the last byte. `min_gap_ms`: the shortest pause shown as a
    silence."""

    name: str
    size: int
    tail: bytes = b""
    member: Member | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    written_ms: int | None = None
    gaps: tuple[LogSilence, ...] = ()
    min_gap_ms: int = MIN_GAP_MS


@dataclass(frozen=True)
class Lanes:
    """`ranks`: one lane per process, by rank; `others`: the logs that belong to no process.

    The time span reaches from the first start to the last end, or to `now_ms` while a process runs. `failed`:
    the lane of the process that failed first."""

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
        """Returns the time of the first failure in seconds after `from_ms`, or None."""
        return (
            None
            if self.failed is None or self.failed.to_ms is None
            else (self.failed.to_ms - self.from_ms) / 1000
        )


def build_lanes(run: Run, attempt: int, members: Sequence[Member], failed: Member | None) -> Lanes:
    """Returns the present lanes of an attempt. `failed`: the process that failed first, if any."""
    now_ms = _ms(timezone.now()) or 0
    sizes = log_store.log_sizes(run.pk, attempt) if attempt else {}
    over_at = Attempt.objects.filter(run=run, number=attempt).values_list("ended_at", flat=True).first()
    own = {member.log_name: member for member in members}
    lives = {name: (_ms(member.started_at), _ended_ms(member, over_at)) for name, member in own.items()}
    from_ms, to_ms = _span(lives.values(), now_ms)
    min_gap_ms = max(MIN_GAP_MS, (to_ms - from_ms) // GAPS_PER_SPAN)
    # The logs of ranks come first, also those without bytes yet, so that the limit cuts off other logs first.
    names = [*own, *(name for name in sizes if name not in own)]
    tails = _tails((run.pk, attempt), [name for name in names[:MAX_TAILS] if sizes.get(name)])
    without_times = [
        Lane(name, sizes.get(name, 0), tails.get(name, b""), member=own.get(name)) for name in names
    ]
    all_lanes = [
        _lane(lane, (run.pk, attempt), lives.get(lane.name), min_gap_ms, is_read=index < MAX_TAILS)
        for index, lane in enumerate(without_times)
    ]
    ranks, others = all_lanes[: len(own)], all_lanes[len(own) :]
    first = next((lane for lane in ranks if failed is not None and lane.name == failed.log_name), None)
    return Lanes(tuple(ranks), tuple(others), from_ms, to_ms, now_ms, first)


def _lane(
    lane: Lane,
    attempt_key: tuple[str, int],
    life: tuple[int | None, int | None] | None,
    min_gap_ms: int,
    *,
    is_read: bool,
) -> Lane:
    began, ended = life or (None, None)
    if not lane.size or not is_read:
        return replace(
            lane,
            from_ms=began,
            to_ms=ended,
            gaps=_gaps(None, began, ended, min_gap_ms),
            min_gap_ms=min_gap_ms,
        )
    times = LogTimeline.load(*attempt_key, lane.name)
    min_gap_ms = max(min_gap_ms, MIN_GAP_TO_RHYTHM * times.median_pause_ms())
    return replace(
        lane,
        from_ms=began,
        to_ms=ended,
        written_ms=times.last_ms,
        gaps=_gaps(times, began, ended, min_gap_ms),
        min_gap_ms=min_gap_ms,
    )


def _tails(attempt_key: tuple[str, int], names: Sequence[str]) -> dict[str, bytes]:
    """Returns the last bytes of each of these logs. Those of the object store are read at the same time; they
    are missing while it is away."""
    archive = log_store.archive_rows(*attempt_key)
    remote, tails = [], {}
    for name in names:
        # An archived log may still have its file.
        if name in archive and not log_store.path(*attempt_key, name).exists():
            row = archive[name]
            remote.append(LogPart.from_range(row, row.size_bytes - TAIL_BYTES, TAIL_BYTES))
        else:
            begin = max(0, log_store.size(*attempt_key, name) - TAIL_BYTES)
            tails[name] = log_store.read(*attempt_key, name, begin, TAIL_BYTES)
    try:
        for part, tail in zip(remote, archived_logs.read_parts(remote), strict=True):
            tails[part.log.name] = tail
    except StoreUnavailable as error:
        # The lanes are of use without last lines, and whoever opens a log gets the reason.
        log.warning("The last lines of %s logs are not shown: %s", len(remote), error)
    return tails


def _span(lives: Iterable[tuple[int | None, int | None]], now_ms: int) -> tuple[int, int]:
    spans = [(began, ended) for began, ended in lives if began is not None]
    if not spans:
        return now_ms, now_ms
    return min(began for began, _ in spans), max(now_ms if ended is None else ended for _, ended in spans)


def _ended_ms(member: Member, over_at: datetime | None) -> int | None:
    """Returns the end of a process. A lost process has no end time, so the attempt's end stands for it."""
    return _ms(member.ended_at or (over_at if member.state in MEMBER_FINAL else None))


def _gaps(
    times: LogTimeline | None, began: int | None, ended: int | None, min_gap_ms: int
) -> tuple[LogSilence, ...]:
    """Returns the longest silences of a process by time, including one right before its end.

    A silence that still lasts is not included: the page computes it from `written_ms`."""
    if began is None:
        return ()
    gaps = times.gaps(min_gap_ms, since_ms=began) if times else []
    last = max(began, times.last_ms if times else 0)
    if ended is not None and ended - last >= min_gap_ms:
        gaps.append(LogSilence(last, ended, is_outage=False))
    # The longest gaps are chosen, then put in the order of time.
    return tuple(sorted(sorted(gaps, key=lambda gap: gap.from_ms - gap.to_ms)[:MAX_GAPS]))


def _ms(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)
