"""How many runs waited and ran, how many GPUs or slots were held, and how many runs failed, over time: the
small curves beside the numbers of the dashboard."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from django.db.models import Count, Q
from django.db.models.functions import TruncDate
from django.utils import timezone
from numpy.typing import NDArray

from clusters.models import Lease
from clusters.visibility import visible_nodes
from jobs.models import Run
from jobs.states import ACTIVE, WAITING, RunState
from jobs.views.sparklines import HEIGHT, WIDTH, svg_paths
from workspaces import process_caches
from workspaces.models import Workspace

SPAN = timedelta(hours=24)
BINS = 48
DAYS = 7
BAR_GAP = 3
# The dashboard refreshes with every change of a run, and a point of these curves is the mean of half an hour.
MAX_AGE_S = 60.0

Floats = NDArray[np.float64]
Interval = tuple[datetime, datetime]


@dataclass(frozen=True)
class Trend:
    """A small curve: `paths` of a line, or `bars` (x, y, width, height), in a box of WIDTH × HEIGHT.
    `sentence`: what it shows, for screen readers and as a tooltip."""

    sentence: str
    paths: tuple[str, ...] = ()
    bars: tuple[tuple[float, float, float, float], ...] = ()

    @property
    def box(self) -> str:
        return f"0 0 {WIDTH} {HEIGHT}"


@dataclass(frozen=True)
class History:
    """The means of each of the BINS parts of the last SPAN, so that short runs count, too, and the failures
    of each of the last DAYS days, today last."""

    waiting: Floats
    running: Floats
    gpus: Floats
    slots: Floats
    failed: tuple[int, ...]


_histories: dict[int, tuple[float, History]] = {}
process_caches.register(_histories.clear)


def trends(workspace: Workspace, now: dict[str, int]) -> dict[str, Trend | None]:
    """Returns the trend of each number in `now` (waiting, running, gpus, slots, failed), which is its last
    value; None where there was nothing at any time."""
    history = _history(workspace)
    lines = {name: getattr(history, name) for name in now if name != "failed"}
    return {
        **{name: _line(values, now[name]) for name, values in lines.items()},
        "failed": _bars((*history.failed[:-1], now["failed"])),
    }


def _history(workspace: Workspace) -> History:
    """Returns the history, at most MAX_AGE_S old. Three queries, if it is older."""
    stored = _histories.get(workspace.pk)
    if stored and time.monotonic() - stored[0] < MAX_AGE_S:
        return stored[1]
    history = _read(workspace, timezone.now())
    _histories[workspace.pk] = (time.monotonic(), history)
    return history


def _read(workspace: Workspace, now: datetime) -> History:
    since = now - SPAN
    edges = np.linspace(since.timestamp(), now.timestamp(), BINS + 1)
    waiting, running = _intervals_of_runs(workspace, since, now)
    leases = Lease.objects.filter(
        Q(released_at=None) | Q(released_at__gte=since), node__in=visible_nodes(workspace).order_by()
    ).values_list("created_at", "released_at", "gpus", "slots")
    held = [(start, end or now, len(gpus), slots) for start, end, gpus, slots in leases]
    return History(
        waiting=_means(edges, [(start, end, 1) for start, end in waiting]),
        running=_means(edges, [(start, end, 1) for start, end in running]),
        gpus=_means(edges, [(start, end, gpus) for start, end, gpus, _ in held]),
        slots=_means(edges, [(start, end, slots) for start, end, _, slots in held]),
        failed=_failures(workspace),
    )


def _intervals_of_runs(
    workspace: Workspace, since: datetime, now: datetime
) -> tuple[list[Interval], list[Interval]]:
    """Returns when runs waited, and when they ran: a run waits until it first runs. If it waits for another
    attempt at present, it waits since it entered this state; earlier such waits count as running."""
    rows = (
        Run.objects.for_workspace(workspace)
        .leading()
        .filter(Q(finished_at__gte=since) | Q(state__in=ACTIVE))
        .order_by()
        .values_list("created_at", "started_at", "finished_at", "state", "state_since")
    )
    waiting: list[Interval] = []
    running: list[Interval] = []
    for created, started, finished, state, state_since in rows:
        end = finished or now
        waiting.append((created, started or end))
        if started and state in WAITING:
            running.append((started, state_since))
            waiting.append((state_since, end))
        elif started:
            running.append((started, end))
    return waiting, running


def _means(edges: Floats, intervals: Sequence[tuple[datetime, datetime, int]]) -> Floats:
    """Returns for each bin between two edges (Unix seconds) the mean of what the intervals (start, end,
    amount) amount to together."""
    rows = [(start.timestamp(), end.timestamp(), amount) for start, end, amount in intervals]
    starts, ends, amounts = np.array(rows, np.float64).reshape(-1, 3).T
    # By clocks that differ, an interval may end before it starts.
    lengths = np.maximum(ends - starts, 0.0)
    # What has passed of all intervals at an edge: its growth over a bin is the bin's part.
    passed = np.array([(np.clip(edge - starts, 0.0, lengths) * amounts).sum() for edge in edges])
    return np.diff(passed) / np.diff(edges)


def _failures(workspace: Workspace) -> tuple[int, ...]:
    today = timezone.localdate()
    first = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS - 1)
    per_day = dict(
        Run.objects.for_workspace(workspace)
        .leading()
        .filter(state=RunState.FAILED, finished_at__gte=first)
        .order_by()
        .annotate(day=TruncDate("finished_at"))
        .values_list("day")
        .annotate(Count("pk"))
    )
    return tuple(per_day.get(today - timedelta(days=ago), 0) for ago in reversed(range(DAYS)))


def _line(values: Floats, now: int) -> Trend | None:
    values = np.append(values, float(now))
    high = float(values.max())
    if not high:
        return None
    low, high_mean = _figure(values[:-1].min()), _figure(values[:-1].max())
    sentence = f"Last 24 hours, means of half hours: {low} to {high_mean}, now {now}"
    return Trend(sentence, paths=tuple(svg_paths(values, 0.0, high)))


def _bars(counts: Sequence[int]) -> Trend | None:
    high = max(counts)
    if not high:
        return None
    width = (WIDTH - BAR_GAP * (len(counts) - 1)) / len(counts)
    # A day without failures is a line of 1 pixel, so that the days can be counted.
    heights = [max(1.0, HEIGHT * count / high) for count in counts]
    bars = tuple(
        (place * (width + BAR_GAP), HEIGHT - height, width, height) for place, height in enumerate(heights)
    )
    before = ", ".join(str(count) for count in counts[:-1])
    return Trend(f"Failed per day in the last {len(counts)} days: {before}, today {counts[-1]}", bars=bars)


def _figure(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
