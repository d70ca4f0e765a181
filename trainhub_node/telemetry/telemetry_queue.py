"""Which numbers and events a report carries, and what becomes of them by the hub's answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from trainhub_launch.report import Ack, Report
from trainhub_launch.telemetry import BUCKET_S, GpuEvent
from trainhub_node.telemetry.buckets import Bucket, Recorder, merge

log = logging.getLogger(__name__)
MAX_BUCKETS = 60
BUCKET_BYTES_PER_REPORT = 1024 * 1024
"""So that the backlog of a partition leaves the road to logs, too."""
MAX_EVENTS = 200
SAMPLE_PAUSE_S = 60.0


class TelemetryQueue:
    """Of the uplink's thread; `wakes` of any. `events`: all that nobody has confirmed, `confirm` forgets them
    up to a serial."""

    def __init__(
        self, recorder: Recorder, events: Callable[[], tuple[GpuEvent, ...]], confirm: Callable[[int], None]
    ) -> None:
        self._recorder = recorder
        self._events = events
        self._confirm = confirm
        self.is_watched = False
        self._last_sample = 0
        self._last_event = 0
        self._pending_buckets: tuple[Bucket, ...] = ()
        self._pending_events: tuple[GpuEvent, ...] = ()
        self._has_heartbeat = False
        self._rejections = 0
        self._samples_paused_until = 0.0

    @property
    def has_samples(self) -> bool:
        """Such as are to be sent."""
        return (
            self.is_watched
            and self._recorder.has_samples(self._last_sample)
            and time.monotonic() >= self._samples_paused_until
        )

    @property
    def has_new_events(self) -> bool:
        """An event that no answered report has carried."""
        return any(event.serial > self._last_event for event in self._events())

    @property
    def is_due(self) -> bool:
        return self.has_samples or self.has_new_events

    def fill(self, report: Report) -> Report:
        """With what there is to tell. Buckets only ride with a sign of life, and make nothing hurry."""
        self._pending_events = self._events()[:MAX_EVENTS] if self._can_send_events else ()
        self._has_heartbeat = report.heartbeat is not None
        self._pending_buckets = (
            self._recorder.buckets(self._bucket_limit, BUCKET_BYTES_PER_REPORT) if self._has_heartbeat else ()
        )
        samples, last_sample = self._recorder.samples(self._last_sample) if self.has_samples else ((), self._last_sample)
        # Whether they arrive or not: a live picture that comes late is none.
        self._last_sample = last_sample
        return replace(report, samples=samples, buckets=merge(self._pending_buckets), events=self._pending_events)

    def on_accepted(self, ack: Ack) -> None:
        self._recorder.confirm(self._pending_buckets, ack.buckets_until)
        if self._pending_events:
            self._last_event = self._pending_events[-1].serial
            self._confirm(min(ack.events_until, self._last_event))
        if self._has_heartbeat:
            self._drop_rejected()
        if ack.is_watched and not self.is_watched:
            # Whoever begins to look sees the last minute at once.
            self._last_sample = 0
        self.is_watched = ack.is_watched

    def on_rejected(self) -> None:
        """The hub will not take the last report, for whatever reason: the next one carries less, so that the
        road stays open."""
        self._rejections += 1
        self._samples_paused_until = time.monotonic() + SAMPLE_PAUSE_S

    @property
    def _bucket_limit(self) -> int:
        # Once without samples, then half as many each time, down to none.
        return MAX_BUCKETS >> max(0, self._rejections - 1)

    @property
    def _can_send_events(self) -> bool:
        return bool(self._bucket_limit) or self._rejections <= MAX_BUCKETS.bit_length() + 1

    def _drop_rejected(self) -> None:
        """A report has passed that left out what was in the refused one before: that was the stumbling
        block."""
        if self._rejections and not self._can_send_events:
            for event in self._events()[:1]:
                log.warning("The hub refuses this event of a GPU, which is dropped: %s", event)
                self._confirm(event.serial)
        elif self._rejections and not self._bucket_limit:
            for bucket in self._recorder.buckets(1, BUCKET_BYTES_PER_REPORT):
                log.warning(
                    "The hub refuses what was measured here from %d on, for %d s; it is dropped",
                    bucket.start,
                    BUCKET_S,
                )
                self._recorder.drop([bucket])
        self._rejections = 0
