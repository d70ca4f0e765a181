"""Walks through the queues of all clusters: places runs on nodes, and records why the others wait."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from django.db.models import QuerySet

from clusters.kinds import backend_of
from clusters.models import Cluster
from clusters.node_facts import REUSED_FOR_S
from jobs.models import Run
from jobs.placements.attempt_start import fail_run
from jobs.queues import queue_order, waiting_runs
from jobs.queues.demands import queued_with_ids
from jobs.queues.waiting_runs import WaitingQueue
from jobs.quotas.quota_check import QuotaBook
from jobs.scheduling.cluster_queue import ClusterQueue, StaleOffers
from jobs.scheduling.hub_queue import HubQueue
from jobs.scheduling.outside_queue import OutsideQueue
from jobs.scheduling.queue_walk import QueueWalk
from jobs.scheduling.waiting_sentences import store_sentences
from jobs.states import Reason
from workspaces import process_caches
from workspaces.database.compiled_queries import compiled

log = logging.getLogger(__name__)
# A pass restarts whenever another worker has placed a run meanwhile; the next tick continues in any case.
MAX_WALKS = 50
# Of a queue up to this length, each walk is whole. Of a longer one, whole walks take at most this part of the
# time, and there is at most one in so many seconds: those between them only place runs.
SHORT_QUEUE, WHOLE_PART, WHOLE_EVERY_S = 200, 0.05, 2.0
# When the next whole walk of a cluster is due, by its name.
_whole_due: dict[str, float] = {}
process_caches.register(_whole_due.clear)


def place_queued(only: Collection[str] | None = None, max_age_s: float = 0.0) -> bool:
    """Places the runs that fit, in queue order, in all clusters or only in those named. `max_age_s`: what the
    nodes are, apart from the leases on them, may have been read so long ago, and REUSED_FOR_S ago for a long
    queue. Returns whether a queue is long.

    The others get a sentence about what they wait for, in a long queue some seconds later. Several workers
    may call this at the same time.
    """
    for walks in range(MAX_WALKS):
        queues = waiting_runs.read_queues(only)
        if queues.unreadable:
            _fail_unreadable(queues.unreadable)
        # The end of each run leads here, and mostly no other one waits.
        if not queues.by_cluster:
            return False
        clusters = {cluster.name: cluster for cluster in _clusters()}
        quotas = QuotaBook()
        try:
            for name, queue in queues.by_cluster.items():
                if name in clusters:
                    # Runs end all the time while a queue is long, and reading the nodes takes longest.
                    age_s = REUSED_FOR_S if is_long(queue) and not walks else max_age_s
                    _place_queue(clusters[name], queue, quotas, age_s)
                else:
                    _fail_all(queue)
        except StaleOffers:
            max_age_s = 0.0
            continue
        return any(map(is_long, queues.by_cluster.values()))
    return True


def is_long(queue: WaitingQueue) -> bool:
    return len(queue.runs) > SHORT_QUEUE


@compiled
def _clusters() -> QuerySet[Cluster]:
    return Cluster.objects.filter(deleted_at=None)


def _place_queue(cluster: Cluster, queue: WaitingQueue, quotas: QuotaBook, max_age_s: float) -> None:
    begin = time.monotonic()
    is_whole = not is_long(queue) or begin >= _whole_due.get(cluster.name, 0.0)
    cluster_queue = _queue_of(cluster, quotas, max_age_s, is_whole=is_whole)
    walk = QueueWalk(cluster_queue, queue, _fail_internal, is_whole=is_whole)
    walk.walk(queue_order.in_order(cluster, queue))
    if is_whole:
        store_sentences(walk.notes)
    if is_whole and is_long(queue):
        end = time.monotonic()
        _whole_due[cluster.name] = end + max(WHOLE_EVERY_S, (end - begin) / WHOLE_PART)


def _queue_of(cluster: Cluster, quotas: QuotaBook, max_age_s: float, *, is_whole: bool) -> ClusterQueue:
    scheduler = backend_of(cluster).scheduler
    if scheduler is None:
        return HubQueue(cluster, quotas, max_age_s, is_whole=is_whole)
    return OutsideQueue(cluster, quotas, scheduler)


def _fail_all(queue: WaitingQueue) -> None:
    for run in queued_with_ids(queue.runs.keys()):
        fail_run(run, f"The cluster {queue.cluster!r} no longer exists.")


def _fail_unreadable(run_ids: Collection[str]) -> None:
    for run in queued_with_ids(run_ids):
        fail_run(run, f"run {run.pk}", Reason.INTERNAL)


def _fail_internal(run: Run) -> None:
    log.exception("Run %s could not be launched", run.pk)
    fail_run(run, f"run {run.pk}", Reason.INTERNAL)
