"""Deletes telemetry that is older than the retention of its step."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Model, QuerySet

from clusters.models import TelemetryChunk, TelemetrySlice
from clusters.telemetry.chunks import span_s
from trainhub_launch.telemetry import BUCKET_S

DAY_S = 86400
# Rows that one statement deletes: few, so that other writers do not wait long.
BATCH = 1000
MAX_BATCHES = 200


def retention_s() -> dict[int, int]:
    """Returns step in seconds -> seconds for which values of that step are kept."""
    days = {
        10: settings.TELEMETRY_KEEP_10S,
        60: settings.TELEMETRY_KEEP_60S,
        600: settings.TELEMETRY_KEEP_600S,
    }
    return {step: round(keep_days * DAY_S) for step, keep_days in days.items()}


def expire(now: float) -> int:
    """Deletes expired rows, up to MAX_BATCHES batches per step, and returns their number. The next call
    deletes the rest."""
    deleted = 0
    for step, keep_s in retention_s().items():
        old = TelemetryChunk.objects.filter(step_s=step, start__lt=int(now) - keep_s - span_s(step))
        deleted += _delete(old)
    # What could not be folded in all that time never will be. What is set aside waits for a hub that can fold
    # it, as long as its numbers would be kept in the longest step.
    slices = TelemetrySlice.objects.filter
    deleted += _delete(slices(set_aside=None, start__lt=int(now) - retention_s()[BUCKET_S]))
    return deleted + _delete(
        slices(set_aside__isnull=False, start__lt=int(now) - max(retention_s().values()))
    )


def _delete(rows: QuerySet[Model]) -> int:
    deleted = 0
    for _ in range(MAX_BATCHES):
        batch = list(rows.values_list("pk", flat=True)[:BATCH])
        deleted += rows.model._default_manager.filter(pk__in=batch).delete()[0] if batch else 0
        if len(batch) < BATCH:
            break
    return deleted
