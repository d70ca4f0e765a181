"""How long numbers are kept, by the length of their step."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Model, QuerySet

from clusters.models import TelemetryChunk, TelemetrySlice
from clusters.telemetry.chunks import span_s
from trainhub_launch.telemetry import BUCKET_S

DAY_S = 86400
BATCH = 1000
"""Rows that one statement deletes: nobody who writes waits long for it."""
MOST_BATCHES = 200


def retention_s() -> dict[int, int]:
    """Step in seconds -> for how many seconds its numbers are kept."""
    days = {
        10: settings.TELEMETRY_KEEP_10S,
        60: settings.TELEMETRY_KEEP_60S,
        600: settings.TELEMETRY_KEEP_600S,
    }
    return {step: round(kept * DAY_S) for step, kept in days.items()}


def expire(now: float) -> int:
    """Delete what is older than its step is kept; how many rows. What is left is deleted the next time."""
    gone = 0
    for step, kept in retention_s().items():
        old = TelemetryChunk.objects.filter(step_s=step, start__lt=int(now) - kept - span_s(step))
        gone += _delete(old)
    # What could not be folded in all that time never will be. What is set aside waits for a hub that can fold
    # it, as long as its numbers would be kept in the longest step.
    slices = TelemetrySlice.objects.filter
    gone += _delete(slices(set_aside=None, start__lt=int(now) - retention_s()[BUCKET_S]))
    return gone + _delete(slices(set_aside__isnull=False, start__lt=int(now) - max(retention_s().values())))


def _delete(rows: QuerySet[Model]) -> int:
    gone = 0
    for _ in range(MOST_BATCHES):
        batch = list(rows.values_list("pk", flat=True)[:BATCH])
        gone += rows.model._default_manager.filter(pk__in=batch).delete()[0] if batch else 0
        if len(batch) < BATCH:
            break
    return gone
