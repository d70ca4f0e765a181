"""Selects the samples, buckets and events of each report, and confirms them by the hub's answer."""

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
# After an outage, a backlog of buckets must leave room for logs.
BUCKET_BYTES_PER_REPORT = 1024 * 1024
MAX_EVENTS = 200
SAMPLE_PAUSE_S = 60.0


class TelemetryQueue:
    """Selects the telemetry of each report. It is used by the uplink's thread; `is_due` may be read from any
    thread.

    `events` returns all unconfirmed events; `confirm` drops them up to a serial."""

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
        """Whether there are samples to send."""
        return (
            self.is_watched
            and self._recorder.has_samples(self._last_sample)
            and time.monotonic() >= self._samples_paused_until
        )

    @property
    def has_new_events(self) -> bool:
        """Whether there is an event that no accepted report has carried."""
        return any(event.serial > self._last_event for event in self._events())

    @property
    def is_due(self) -> bool:
        return self.has_samples or self.has_new_events

    def fill(self, report: Report) -> Report:
        """Returns the report with the telemetry that is due. Buckets are sent only with heartbeats and cause
        no report of their own."""
        self._pending_events = self._events()[:MAX_EVENTS] if self._can_send_events else ()
        self._has_heartbeat = report.heartbeat is not None
        self._pending_buckets = (
            self._recorder.buckets(self._bucket_limit, BUCKET_BYTES_PER_REPORT) if self._has_heartbeat else ()
        )
        samples, last_sample = (
            self._recorder.samples(self._last_sample) if self.has_samples else ((), self._last_sample)
        )
        # Samples are never sent again: a live view has no use for late ones.
        self._last_sample = last_sample
        return replace(
            report, samples=samples, buckets=merge(self._pending_buckets), events=self._pending_events
        )

    def on_accepted(self, ack: Ack) -> None:
        """Confirms what the hub has stored, after a report was accepted."""
        self._recorder.confirm(self._pending_buckets, ack.buckets_until)
        if self._pending_events:
            self._last_event = self._pending_events[-1].serial
            self._confirm(min(ack.events_until, self._last_event))
        if self._has_heartbeat:
            self._drop_rejected()
        if ack.is_watched and not self.is_watched:
            # A new viewer sees the last minute at once.
            self._last_sample = 0
        self.is_watched = ack.is_watched

    def on_rejected(self) -> None:
        """Makes the next reports smaller after the hub rejected one, so that a bad value cannot block all
        reports."""
        self._rejections += 1
        self._samples_paused_until = time.monotonic() + SAMPLE_PAUSE_S

    @property
    def _bucket_limit(self) -> int:
        # First without samples, then with half as many buckets each time, down to none.
        return MAX_BUCKETS >> max(0, self._rejections - 1)

    @property
    def _can_send_events(self) -> bool:
        return bool(self._bucket_limit) or self._rejections <= MAX_BUCKETS.bit_length() + 1

    def _drop_rejected(self) -> None:
        """Drops the oldest value of a kind that the hub rejects: reports with such values failed, and one
        without them has passed."""
        if self._rejections and not self._can_send_events:
            for event in self._events()[:1]:
                log.warning("The hub rejects this GPU event, which is dropped: %s", event)
                self._confirm(event.serial)
        elif self._rejections and not self._bucket_limit:
            for bucket in self._recorder.buckets(1, BUCKET_BYTES_PER_REPORT):
                log.warning(
                    "The hub rejects the measurements from %d on, for %d s; they are dropped",
                    bucket.start,
                    BUCKET_S,
                )
                self._recorder.drop([bucket])
        self._rejections = 0
