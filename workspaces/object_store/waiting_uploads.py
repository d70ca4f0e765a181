"""How many files wait for their upload to the store, as figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Sum
from prometheus_client.core import GaugeMetricFamily, Metric

from workspaces.object_store.rows import is_store_used, waiting_objects


@dataclass(frozen=True)
class WaitingUploads:
    """`oldest_at`: since when the first of them waits; None if none does."""

    count: int
    size_bytes: int
    oldest_at: datetime | None


def waiting_uploads() -> WaitingUploads:
    facts = waiting_objects().aggregate(
        count=Count("pk"), size=Sum("size_bytes", default=0), oldest=Min("waits_since")
    )
    return WaitingUploads(facts["count"] or 0, facts["size"] or 0, facts["oldest"])


def waiting_upload_metrics() -> Iterator[Metric]:
    """Yields nothing without BLOB_STORE."""
    if not is_store_used():
        return
    waiting = waiting_uploads()
    yield GaugeMetricFamily(
        "trainhub_waiting_uploads", "Files that are not uploaded to the object store yet.", waiting.count
    )
    yield GaugeMetricFamily(
        "trainhub_waiting_upload_bytes", "The bytes of these files.", float(waiting.size_bytes)
    )
