"""What the page System shows of the object store of BLOB_STORE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trainhub.system_page.timings import RequestTiming, merged_series, timing_columns, value_of, value_sum
from workspaces.hub_metrics.processes import MeasuredProcess
from workspaces.object_store.client import store_configuration
from workspaces.object_store.waiting_uploads import waiting_uploads


@dataclass(frozen=True)
class StoreFigures:
    """Requests, bytes and reads within the window, over all processes. `disk_reads`: of stored files whose
    copy was here; `store_reads`: of those that came from the store. `upload_retries`: uploads that failed and
    were put off. `cache_bytes`: of the files on the disk of that server which has most, as it counted them
    last; None: not counted yet. `cache_limit_bytes`: 0 for none. `waiting`: files not uploaded yet."""

    place: str
    requests: list[RequestTiming]
    sent_bytes: int
    received_bytes: int
    upload_retries: int
    disk_reads: int
    store_reads: int
    cache_bytes: int | None
    cache_limit_bytes: int
    waiting: int
    waiting_bytes: int
    oldest_at: datetime | None

    @property
    def hit_percent(self) -> int | None:
        """Of the reads, the share that the disk answered; None without a read."""
        reads = self.disk_reads + self.store_reads
        return round(100 * self.disk_reads / reads) if reads else None


def store_figures(living: Sequence[MeasuredProcess]) -> StoreFigures | None:
    """Returns None without BLOB_STORE."""
    configuration = store_configuration()
    if configuration is None:
        return None
    waiting = waiting_uploads()
    sizes = [size for process in living if (size := value_of(process, "trainhub_blob_cache_bytes"))]
    return StoreFigures(
        configuration.place,
        _requests(living),
        int(value_sum("trainhub_store_bytes", living, ("sent",))),
        int(value_sum("trainhub_store_bytes", living, ("received",))),
        int(value_sum("trainhub_store_upload_retries", living)),
        int(value_sum("trainhub_blob_reads", living, ("disk",))),
        int(value_sum("trainhub_blob_reads", living, ("store",))),
        int(max(sizes)) if sizes else None,
        configuration.cache_bytes,
        waiting.count,
        waiting.size_bytes,
        waiting.oldest_at,
    )


def _requests(living: Sequence[MeasuredProcess]) -> list[RequestTiming]:
    metric, merged = merged_series("trainhub_store_request_seconds", living)
    return [
        RequestTiming(
            *timing_columns(labels[0], metric, series),
            int(value_sum("trainhub_store_failures", living, labels)),
        )
        for labels, series in sorted(merged.items())
    ]
