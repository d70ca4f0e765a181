"""How far each node's clock is from the hub's, learned from when its reports were sent and when they came.

What a report takes on its way makes the node's clock look slow, never fast: the smallest difference of late
is nearest to the truth."""

from __future__ import annotations

import math
import threading
from collections import deque
from datetime import datetime

from clusters.models import Node

IGNORED_S = 0.5
TOLD_S = 2.0
WINDOW_S = 60.0
SAMPLE_S = 1.0
SURE_AFTER_S = 10.0
NO_DELAY_S = 30.0
"""No report takes that long: a node waits less for an answer."""

_lock = threading.Lock()
_samples: dict[int, deque[tuple[float, float]]] = {}


def observe(node: Node, sent_at: float, now: datetime) -> float:
    """Set `node.clock_offset_s` (the hub's clock less the node's) from a report; by how much it has
    changed."""
    if not math.isfinite(sent_at):
        return 0.0
    smallest, span_s = _remember(node.pk, now.timestamp() - sent_at, now.timestamp())
    found = smallest if abs(smallest) >= IGNORED_S else 0.0
    moved = found - node.clock_offset_s
    # A report that was long on its way must not look like a clock that is slow.
    sure = moved < 0 or moved > NO_DELAY_S or span_s >= SURE_AFTER_S
    if abs(moved) < IGNORED_S or not sure:
        return 0.0
    node.clock_offset_s = found
    return moved


def sentence(offset_s: float) -> str:
    if abs(offset_s) <= TOLD_S:
        return "Its clock agrees with the hub's again."
    way = "behind" if offset_s > 0 else "ahead of"
    return (
        f"Its clock is {abs(offset_s):.0f} s {way} the hub's. The times of its runs are corrected by "
        "that; have it set by NTP."
    )


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    with _lock:
        _samples.clear()


def _remember(node_id: int, apparent_s: float, at: float) -> tuple[float, float]:
    """The smallest difference of late, and for how long they have been watched; one sample is kept for each
    second."""
    with _lock:
        kept = _samples.setdefault(node_id, deque(maxlen=int(WINDOW_S / SAMPLE_S) + 1))
        if kept and 0 <= at - kept[-1][0] < SAMPLE_S:
            kept[-1] = (kept[-1][0], min(kept[-1][1], apparent_s))
        else:
            kept.append((at, apparent_s))
        while not 0 <= at - kept[0][0] <= WINDOW_S:
            kept.popleft()
        return min(sample for _, sample in kept), at - kept[0][0]
