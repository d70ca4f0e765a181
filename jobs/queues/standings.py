"""What pages and the API tell of the queue of a cluster: its order, the place of a run, and what its
workspace has used.

They show a picture of the queue. That of a short queue is taken anew each time; that of a long one serves all
requests of some seconds, because the order of all its runs has to be worked out for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import QuerySet
from django.utils import timezone

from clusters.fair_share import shares, use
from clusters.kinds import backend_of
from clusters.models import Cluster, Lease
from jobs.models import Run
from jobs.queues.demands import QueuedRun, queued_with_ids, with_demands
from jobs.queues.queue_order import in_order, ordinal
from jobs.queues.waiting_runs import WaitingRun, read_queues
from jobs.states import RunKind, RunState
from trainhub_launch.scheduler import fair_share
from trainhub_launch.spec_reader import read_spec
from workspaces import process_caches
from workspaces.database.compiled_queries import compiled

# Up to so many waiting runs the picture is taken anew for each request.
SHORT_QUEUE = 200
# That of a longer queue is at most so old.
REUSED_FOR_S = 2.0
# So far may the clocks of two servers be apart.
CLOCKS_APART = timedelta(seconds=3)


@dataclass(frozen=True)
class QueueStanding:
    """The place of a waiting run, from 1, among `total` runs that wait for the cluster, and the sentence
    that says so, with the reason. `place`: None = the run is so new that it is not worked out yet."""

    place: int | None
    total: int
    sentence: str


@dataclass(frozen=True)
class QueuePicture:
    """The waiting runs of a cluster in order. `use`: GPU-seconds of the workspaces that have runs there now,
    running or waiting, and `shares` of those that have one. `read_at`: nothing of it is older."""

    cluster: Cluster
    order: tuple[WaitingRun, ...]
    use: dict[int, float]
    shares: dict[int, float]
    active: frozenset[int]
    read_at: datetime
    age_from: float = field(default_factory=time.monotonic)

    @cached_property
    def places(self) -> dict[str, int]:
        return {run.pk: place for place, run in enumerate(self.order, 1)}

    @property
    def is_recent(self) -> bool:
        return len(self.order) > SHORT_QUEUE and time.monotonic() - self.age_from < REUSED_FOR_S

    def use_sentence(self, run: Run) -> str:
        """Returns how much the run's workspace has used of the cluster, and its share, both beside the other
        workspaces that have runs there now: the share of the rest is lent to these."""
        own = fair_share.standings(self.use, self.shares, self.active)[run.workspace_id]
        return (
            f"of what the workspaces with runs on {self.cluster.name} have used recently, "
            f"{run.workspace.slug} has used {own.used:.0%}; its share is {own.share:.0%}"
        ).replace("%", " %")


_recent: dict[int, QueuePicture] = {}
_lock = threading.Lock()
process_caches.register(_recent.clear)


def picture_of(cluster: Cluster, workspace_id: int | None = None) -> QueuePicture:
    """Returns the queue of the cluster; of a long one, as it was at most REUSED_FOR_S ago. `workspace_id`: a
    workspace that is to count among those with runs there."""
    # Of the requests of one moment, one takes the picture, and the others wait for it.
    picture = _usable(cluster, workspace_id)
    if picture is None:
        with _lock:
            picture = _usable(cluster, workspace_id) or _take(cluster, workspace_id)
            _recent[cluster.pk] = picture
    return picture


def _usable(cluster: Cluster, workspace_id: int | None) -> QueuePicture | None:
    picture = _recent.get(cluster.pk)
    if picture is None or not picture.is_recent or workspace_id not in (None, *picture.active):
        return None
    return picture


def _take(cluster: Cluster, workspace_id: int | None) -> QueuePicture:
    age_from, read_at = time.monotonic(), timezone.now()
    queue = read_queues([cluster.name]).of(cluster.name)
    active = queue.workspaces() | {pk or 0 for (pk,) in _workspaces_with_leases(cluster.pk)}
    active |= set() if workspace_id is None else {workspace_id}
    used = use.use_of(cluster, workspaces=active)
    return QueuePicture(
        cluster,
        tuple(in_order(cluster, queue, used)),
        shares.use_by_workspace(used),
        shares.shares_of(cluster),
        frozenset(active),
        read_at,
        age_from,
    )


def standing_of(run: Run) -> QueueStanding | None:
    """Returns where the run stands in the hub's queue of its cluster, None if it does not wait there."""
    if run.state != RunState.QUEUED or run.kind != RunKind.JOB:
        return None
    cluster = next(iter(_clusters(run.spec["resources"]["cluster"])), None)
    if cluster is None or backend_of(cluster).scheduler is not None:
        return None
    picture = picture_of(cluster, run.workspace_id)
    place, total, use_sentence = picture.places.get(run.pk), len(picture.order), picture.use_sentence(run)
    if place is not None:
        return QueueStanding(place, total, f"{ordinal(place)} of {total}; {use_sentence}.")
    if run.state_since < picture.read_at - CLOCKS_APART or total <= SHORT_QUEUE:
        return None
    sentence = f"One of about {total + 1} that wait; its place is worked out within {REUSED_FOR_S:g} s"
    return QueueStanding(None, total + 1, f"{sentence}; {use_sentence}.")


def with_runs(waiting: Sequence[WaitingRun]) -> list[QueuedRun]:
    """Returns those of the runs that wait still, with what they need."""
    rows = {run.pk: run for run in queued_with_ids([run.pk for run in waiting])}
    return list(
        with_demands([(rows[run.pk], read_spec(rows[run.pk].spec)) for run in waiting if run.pk in rows])
    )


@compiled
def _clusters(name: str) -> QuerySet[Cluster]:
    return Cluster.objects.filter(name=name, deleted_at=None)


@compiled
def _workspaces_with_leases(cluster_id: int) -> QuerySet[Lease, tuple[int | None]]:
    leases = Lease.objects.filter(node__cluster_id=cluster_id, released_at=None).exclude(workspace=None)
    return leases.order_by().values_list("workspace_id").distinct()
