"""Estimates the difference between a node's clock and the hub's from when its reports were sent and when they
arrived.

The time that a report travels makes the node's clock look slow, never fast: the smallest difference among
recent reports is nearest to the truth."""

from __future__ import annotations

import math
import threading
from collections import deque
from datetime import datetime, timedelta

from clusters.models import Node

IGNORED_S = 0.5
# A larger difference is shown to people.
NOTICED_S = 2.0
WINDOW_S = 60.0
SAMPLE_S = 1.0
SURE_AFTER_S = 10.0
# No report travels longer: a node waits less than this for an answer.
MAX_DELAY_S = 30.0


class NodeClock:
    """Recent differences between the hub's clock and that of one node, one sample for each second."""

    def __init__(self) -> None:
        # Reports of one node may be ingested by two threads.
        self._lock = threading.Lock()
        self._samples: deque[tuple[float, float]] = deque(maxlen=int(WINDOW_S / SAMPLE_S) + 1)

    def observe(self, node: Node, sent_at: float, now: datetime) -> float:
        """Sets `node.clock_offset_s` (the hub's clock minus the node's) from a report that was sent at
        `sent_at` (Unix seconds by the node's clock) and arrived `now`. Returns by how much the offset
        changed, 0 for not at all."""
        if not math.isfinite(sent_at):
            return 0.0
        smallest, span_s = self._add(now.timestamp() - sent_at, now.timestamp())
        # Smaller differences are within what reports travel, and would change the row again and again.
        offset_s = smallest if abs(smallest) >= IGNORED_S else 0.0
        change_s = offset_s - node.clock_offset_s
        # A report that travelled for long must not look like a slow clock.
        is_sure = change_s < 0 or change_s > MAX_DELAY_S or span_s >= SURE_AFTER_S
        if abs(change_s) < IGNORED_S or not is_sure:
            return 0.0
        node.clock_offset_s = offset_s
        return change_s

    def hub_time(self, node: Node, sent_at: float, now: datetime) -> datetime:
        """Returns when a report was sent, by the hub's clock: at most MAX_DELAY_S before it arrived `now`."""
        delay_s = now.timestamp() - sent_at - node.clock_offset_s
        return now - timedelta(seconds=min(max(delay_s, 0.0), MAX_DELAY_S)) if math.isfinite(delay_s) else now

    def _add(self, difference_s: float, at: float) -> tuple[float, float]:
        """Returns the smallest recent difference, and the seconds that the samples span."""
        with self._lock:
            samples = self._samples
            # One sample for each second bounds the memory: a busy node reports many times a second.
            if samples and 0 <= at - samples[-1][0] < SAMPLE_S:
                samples[-1] = (samples[-1][0], min(samples[-1][1], difference_s))
            else:
                samples.append((at, difference_s))
            # Also drops samples from the future, which remain when the hub's own clock was set back.
            while not 0 <= at - samples[0][0] <= WINDOW_S:
                samples.popleft()
            return min(sample for _, sample in samples), at - samples[0][0]


def offset_sentence(offset_s: float) -> str:
    """Returns the sentence for people about a node whose clock is `offset_s` behind the hub's (negative:
    ahead)."""
    if abs(offset_s) <= NOTICED_S:
        return "Its clock agrees with the hub's again."
    way = "behind" if offset_s > 0 else "ahead of"
    return (
        f"Its clock is {abs(offset_s):.0f} s {way} the hub's. The times of its runs are corrected by "
        "that; have it set by NTP."
    )
