"""The curves of a run: what its nodes and GPUs measured while an attempt lived, read live and kept after its
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

from clusters.models import KeptSeries, Node
from clusters.telemetry import attempt_curves, expiry, series
from clusters.telemetry.attempt_curves import StoredCurves
from clusters.telemetry.series import NodeSeries
from jobs.models import Attempt, AttemptNode, Member, Run
from trainhub_launch.telemetry import BUCKET_S, HOST

log = logging.getLogger(__name__)
SETTLE_DELAY = timedelta(seconds=60)
"""The buckets of an attempt's last seconds come after its part is settled; those of a node that was cut off,
quickly then."""
MAX_SETTLE_WAIT = timedelta(hours=2)
"""A node that is lost may never settle its part: what it told before is kept."""
MAX_PARTS = 50


@dataclass(frozen=True)
class CurveQuery:
    """`start`, `end`: Unix seconds."""

    gpu_metrics: Sequence[str]
    host_metrics: Sequence[str]
    start: float
    end: float
    points: int


def store_ended_curves(now: datetime | None = None) -> int:
    """Keep the curves of attempts that have ended; of how many parts. The rest is for the next time."""
    count = 0
    for part in _due(now or datetime.now(UTC))[:MAX_PARTS]:
        attempt = part.attempt
        start, end = span(attempt, now or datetime.now(UTC))
        try:
            attempt_curves.store(attempt.run_id, attempt.number, part.node, start=start, end=end)
            if not Run.objects.filter(pk=attempt.run_id).exists():
                # Deleted in this moment; nobody would ever look for them again.
                attempt_curves.delete(attempt.run_id)
            count += 1
        except DatabaseError:
            raise
        except Exception:
            log.exception(
                "The curves of run %s on node %s could not be kept; the others go on",
                attempt.run_id,
                part.node.name,
            )
    return count


def span(attempt: Attempt, now: datetime) -> tuple[float, float]:
    """From its placement to its end, or to now; Unix seconds, at least one bucket long."""
    start, end = attempt.created_at.timestamp(), (attempt.ended_at or now).timestamp()
    return start, max(end, start + BUCKET_S)


def nodes_of(attempt: Attempt) -> list[Node]:
    parts = AttemptNode.objects.filter(attempt=attempt).select_related("node").order_by("node_rank")
    return [part.node for part in parts]


def own_gpus(members: Sequence[Member]) -> dict[int, list[str]]:
    """Node id -> the GPUs that ranks of the run have there, by rank."""
    gpus_by_node: dict[int, dict[str, None]] = {}
    for member in members:
        gpus_by_node.setdefault(member.node_id, {}).update(dict.fromkeys(member.gpus))
    return {node: list(gpus) for node, gpus in gpus_by_node.items()}


class CurveReader:
    """Reads one attempt's curves, node by node: from what was kept, or where that is too coarse or not there
    yet, live."""

    def __init__(self, attempt: Attempt) -> None:
        self._stored = attempt_curves.load(attempt.run_id, attempt.number)

    def read(self, node: Node, gpus: Sequence[str] | None, query: CurveQuery) -> NodeSeries:
        """`gpus` None: all of the node's."""
        params = dataclasses.asdict(query)
        stored = self._stored.get(node.name)
        if stored is not None and self._is_enough(stored, query):
            return attempt_curves.read(stored, gpus, **params)
        return series.read(node, gpus, **params)

    @staticmethod
    def _is_enough(stored: StoredCurves, query: CurveQuery) -> bool:
        finest_s = series.step_for(query.start, query.end, query.points, time.time())
        return stored.step_s <= max(finest_s, (query.end - query.start) / query.points)


def _due(now: datetime) -> QuerySet[AttemptNode]:
    """Parts that have ended and of which nothing is kept. What is older than the numbers themselves stays as
    it is."""
    oldest = now - timedelta(seconds=expiry.retention_s()[BUCKET_S])
    settled = Q(settled_at__gt=oldest, settled_at__lt=now - SETTLE_DELAY, attempt__ended_at__isnull=False)
    unsettled = Q(settled_at=None, attempt__ended_at__gt=oldest, attempt__ended_at__lt=now - MAX_SETTLE_WAIT)
    stored = KeptSeries.objects.filter(
        holder=OuterRef("attempt__run_id"),
        attempt=OuterRef("attempt__number"),
        node_name=OuterRef("node__name"),
        subject=HOST,
    )
    due = AttemptNode.objects.filter(settled | unsettled, ~Exists(stored), claimed_at__isnull=False)
    return due.select_related("attempt", "node").order_by("pk")
