"""The curves of a run: the measurements of its nodes and GPUs during an attempt, live and stored after its
end."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import DatabaseError
from django.db.models import Exists, OuterRef, Q, QuerySet

from clusters.models import Node, StoredSeries
from clusters.telemetry import attempt_curves, expiry, series
from clusters.telemetry.attempt_curves import StoredCurves
from clusters.telemetry.series import NodeSeries
from jobs.models import Attempt, AttemptNode, Member, Run
from trainhub_launch.telemetry import BUCKET_S, HOST

log = logging.getLogger(__name__)
# Time for a node to send the measurements of an attempt's last seconds after its part is settled.
SETTLE_DELAY = timedelta(seconds=60)
# A lost node may never settle its part; after this time the measurements that arrived are stored.
MAX_SETTLE_WAIT = timedelta(hours=2)
MAX_PARTS = 50


@dataclass(frozen=True)
class CurveQuery:
    """The metrics and time span to read. `start`, `end`: Unix seconds. `points`: the maximum per curve."""

    gpu_metrics: Sequence[str]
    host_metrics: Sequence[str]
    start: float
    end: float
    points: int


def store_ended_curves(now: datetime | None = None) -> int:
    """Stores the curves of ended attempts, at most MAX_PARTS parts per call; returns the number of parts."""
    count = 0
    for part in _due(now or datetime.now(UTC))[:MAX_PARTS]:
        attempt = part.attempt
        start, end = span(attempt, now or datetime.now(UTC))
        try:
            attempt_curves.store_curves(attempt.run_id, attempt.number, part.node, start=start, end=end)
            if not Run.objects.filter(pk=attempt.run_id).exists():
                # The run was deleted meanwhile, so a purge would not find these rows.
                attempt_curves.delete_curves(attempt.run_id)
            count += 1
        except DatabaseError:
            raise
        except Exception:
            log.exception(
                "The curves of run %s on node %s could not be stored; the others are not affected",
                attempt.run_id,
                part.node.name,
            )
    return count


def span(attempt: Attempt, now: datetime) -> tuple[float, float]:
    """Returns the time from the attempt's placement to its end or now in Unix seconds, at least one
    bucket."""
    start, end = attempt.created_at.timestamp(), (attempt.ended_at or now).timestamp()
    return start, max(end, start + BUCKET_S)


def nodes_of_run(attempt: Attempt) -> list[Node]:
    parts = AttemptNode.objects.filter(attempt=attempt).select_related("node").order_by("node_rank")
    return [part.node for part in parts]


def gpus_of_run(members: Sequence[Member]) -> dict[int, list[str]]:
    """Returns node id -> UUIDs of the GPUs that the run's ranks use there, by rank."""
    gpus_by_node: dict[int, dict[str, None]] = {}
    for member in members:
        gpus_by_node.setdefault(member.node_id, {}).update(dict.fromkeys(member.gpus))
    return {node: list(gpus) for node, gpus in gpus_by_node.items()}


class CurveReader:
    """Reads the curves of one attempt node by node: the stored ones, or the live ones if those are missing or
    too coarse."""

    def __init__(self, attempt: Attempt) -> None:
        self._stored = attempt_curves.load_curves(attempt.run_id, attempt.number)

    def read(self, node: Node, gpus: Sequence[str] | None, query: CurveQuery) -> NodeSeries:
        """Returns the curves of a node. `gpus`: UUIDs of the GPUs to read, or None for all GPUs of the
        node."""
        params = dataclasses.asdict(query)
        stored = self._stored.get(node.name)
        if stored is not None and self._is_enough(stored, query):
            return attempt_curves.read_stored(stored, gpus, **params)
        return series.read_node(node, gpus, **params)

    @staticmethod
    def _is_enough(stored: StoredCurves, query: CurveQuery) -> bool:
        finest_s = series.step_for(query.start, query.end, query.points, time.time())
        return stored.step_s <= max(finest_s, (query.end - query.start) / query.points)


def _due(now: datetime) -> QuerySet[AttemptNode]:
    """Returns ended parts without stored curves, except those whose live measurements have expired."""
    oldest = now - timedelta(seconds=expiry.retention_s()[BUCKET_S])
    settled = Q(settled_at__gt=oldest, settled_at__lt=now - SETTLE_DELAY, attempt__ended_at__isnull=False)
    unsettled = Q(settled_at=None, attempt__ended_at__gt=oldest, attempt__ended_at__lt=now - MAX_SETTLE_WAIT)
    stored = StoredSeries.objects.filter(
        holder=OuterRef("attempt__run_id"),
        attempt=OuterRef("attempt__number"),
        node_name=OuterRef("node__name"),
        subject=HOST,
    )
    due = AttemptNode.objects.filter(settled | unsettled, ~Exists(stored), claimed_at__isnull=False)
    return due.select_related("attempt", "node").order_by("pk")
