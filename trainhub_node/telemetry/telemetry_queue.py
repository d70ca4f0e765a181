"""Which numbers and events a report carries, and what becomes of them by the hub's answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from trainhub_launch.report import Ack, Report
from trainhub_launch.telemetry import BUCKET_S, GpuEvent
from trainhub_node.telemetry.buckets import Bucket, Recorder, joined

log = logging.getLogger(__name__)
MOST_BUCKETS = 60
BUCKET_BYTES_PER_REPORT = 1024 * 1024
"""So that the backlog of a partition leaves the road to logs, too."""
MOST_EVENTS = 200
WITHOUT_SAMPLES_S = 60.0


class Feed:
    """Of the uplink's thread; `wakes` of any. `events`: all that nobody has confirmed, `confirm` forgets them
    up to a serial."""

    def __init__(
        self, recorder: Recorder, events: Callable[[], tuple[GpuEvent, ...]], confirm: Callable[[int], None]
    ) -> None:
        self._recorder = recorder
        self._events = events
        self._confirm = confirm
        self.is_watched = False
        self._sampled = 0
        self._told_event = 0
        self._sent: tuple[Bucket, ...] = ()
        self._sent_events: tuple[GpuEvent, ...] = ()
        self._beats = False
        self._refusals = 0
        self._samples_again_at = 0.0

    @property
    def has_samples(self) -> bool:
        """Such as are to be sent."""
        return (
            self.is_watched
            and self._recorder.has_samples(self._sampled)
            and time.monotonic() >= self._samples_again_at
        )

    @property
    def has_news(self) -> bool:
        """An event that no answered report has carried."""
        return any(event.serial > self._told_event for event in self._events())

    @property
    def wakes(self) -> bool:
        return self.has_samples or self.has_news

    def fill(self, report: Report) -> Report:
        """With what there is to tell. Buckets only ride with a sign of life, and make nothing hurry."""
        self._sent_events = self._events()[:MOST_EVENTS] if self._may_tell_events else ()
        self._beats = report.heartbeat is not None
        self._sent = (
            self._recorder.buckets(self._most_buckets, BUCKET_BYTES_PER_REPORT) if self._beats else ()
        )
        samples, sampled = self._recorder.samples(self._sampled) if self.has_samples else ((), self._sampled)
        # Whether they arrive or not: a live picture that comes late is none.
        self._sampled = sampled
        return replace(report, samples=samples, buckets=joined(self._sent), events=self._sent_events)

    def taken(self, ack: Ack) -> None:
        self._recorder.confirm(self._sent, ack.buckets_until)
        if self._sent_events:
            self._told_event = self._sent_events[-1].serial
            self._confirm(min(ack.events_until, self._told_event))
        if self._beats:
            self._blame()
        if ack.is_watched and not self.is_watched:
            # Whoever begins to look sees the last minute at once.
            self._sampled = 0
        self.is_watched = ack.is_watched

    def refused(self) -> None:
        """The hub will not take the last report, for whatever reason: the next one carries less, so that the
        road stays open."""
        self._refusals += 1
        self._samples_again_at = time.monotonic() + WITHOUT_SAMPLES_S

    @property
    def _most_buckets(self) -> int:
        # Once without samples, then half as many each time, down to none.
        return MOST_BUCKETS >> max(0, self._refusals - 1)

    @property
    def _may_tell_events(self) -> bool:
        return bool(self._most_buckets) or self._refusals <= MOST_BUCKETS.bit_length() + 1

    def _blame(self) -> None:
        """A report has passed that left out what was in the refused one before: that was the stumbling
        block."""
        if self._refusals and not self._may_tell_events:
            for event in self._events()[:1]:
                log.warning("The hub refuses this event of a GPU, which is dropped: %s", event)
                self._confirm(event.serial)
        elif self._refusals and not self._most_buckets:
            for bucket in self._recorder.buckets(1, BUCKET_BYTES_PER_REPORT):
                log.warning(
                    "The hub refuses what was measured here from %d on, for %d s; it is dropped",
                    bucket.start,
                    BUCKET_S,
                )
                self._recorder.forget([bucket])
        self._refusals = 0
