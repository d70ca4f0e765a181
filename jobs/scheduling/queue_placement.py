"""Walks through the queues of all clusters: places runs on nodes, and records why the others wait."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from django.db import DatabaseError
from django.db.models import QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from clusters.kinds import backend_of
from clusters.models import Cluster
from jobs.models import Run
from jobs.placements.attempt_start import fail_run
from jobs.quotas.quota_check import QuotaBook
from jobs.scheduling import queue_order
from jobs.scheduling.cluster_queue import ClusterQueue, StaleOffers
from jobs.scheduling.hub_queue import HubQueue
from jobs.scheduling.outside_queue import OutsideQueue
from jobs.scheduling.queue_order import QueuedRun, with_demands
from jobs.states import Reason
from trainhub_launch.frameworks import demand
from trainhub_launch.spec_reader import read_spec
from workspaces.database.compiled_queries import compiled

log = logging.getLogger(__name__)
# A pass restarts whenever another worker has placed a run meanwhile; the next tick continues in any case.
MAX_WALKS = 50


def place_queued(only: Collection[str] | None = None, max_age_s: float = 0.0) -> None:
    """Places the runs that fit, in queue order, in all clusters or only in those named. `max_age_s`: what the
    nodes are, apart from the leases on them, may have been read so long ago.

    The others get a sentence about what they wait for. Several workers may call this at the same time.
    """
    for _ in range(MAX_WALKS):
        queues: dict[str, list[QueuedRun]] = {}
        for turn in queued_runs(only):
            queues.setdefault(turn.spec.resources.cluster, []).append(turn)
        # The end of each run leads here, and mostly no other one waits.
        if not queues:
            return
        clusters = {cluster.name: cluster for cluster in _clusters()}
        quotas = QuotaBook()
        try:
            for name, queue in queues.items():
                _place_queue(name, queue, clusters.get(name), quotas, max_age_s)
        except StaleOffers:
            max_age_s = 0.0
            continue
        return


def queued_runs(only: Collection[str] | None = None) -> Iterator[QueuedRun]:
    """Yields the queued runs of all clusters, or of those named, in order; fails those with an unreadable
    spec."""
    items = []
    for run in _all_queued() if only is None else [run for name in only for run in _queued_for(name)]:
        # A spec that an earlier version wrote may not be readable any more; the other runs must still be
        # placed.
        try:
            spec = read_spec(run.spec)
            demand(spec)
        except Exception:
            _fail_internal(run)
        else:
            items.append((run, spec))
    yield from with_demands(items)


def _queued() -> QuerySet[Run]:
    # The preview holds the whole plan, which may be long, and is not needed here.
    queued: QuerySet[Run] = Run.objects.queued().select_related("workspace", "created_by")
    return queued.defer("preview")


@compiled
def _all_queued() -> QuerySet[Run]:
    return _queued()


@compiled
def _queued_for(cluster: str) -> QuerySet[Run]:
    # Compared as text: a condition on JSON would have another parameter in each kind of database.
    name = Cast(KT("spec__resources__cluster"), TextField())
    return _queued().alias(cluster=name).filter(cluster=cluster)


@compiled
def _clusters() -> QuerySet[Cluster]:
    return Cluster.objects.filter(deleted_at=None)


def _place_queue(
    name: str, queue: list[QueuedRun], cluster: Cluster | None, quotas: QuotaBook, max_age_s: float
) -> None:
    queued = None if cluster is None else _queue_of(cluster, quotas, max_age_s)
    for turn in queue if cluster is None else queue_order.in_order(cluster, queue):
        try:
            if queued is None:
                fail_run(turn.run, f"The cluster {name!r} no longer exists.")
            else:
                queued.process(turn)
        except (DatabaseError, StaleOffers):
            raise
        except Exception:
            # A bug that one run triggers must not block the rest of the queue.
            _fail_internal(turn.run)
    if queued is not None:
        queued.finish(queue)


def _queue_of(cluster: Cluster, quotas: QuotaBook, max_age_s: float) -> ClusterQueue:
    scheduler = backend_of(cluster).scheduler
    if scheduler is None:
        return HubQueue(cluster, quotas, max_age_s)
    return OutsideQueue(cluster, quotas, scheduler)


def _fail_internal(run: Run) -> None:
    log.exception("Run %s could not be launched", run.pk)
    fail_run(run, f"run {run.pk}", Reason.INTERNAL)
