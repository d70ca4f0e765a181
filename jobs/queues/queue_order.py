"""The order of a cluster's queue: by priority, then by fair share, and who keeps a claim in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from django.db import transaction
from django.utils import timezone

from clusters.fair_share.shares import shares_of
from clusters.fair_share.use import UserKey, use_of
from clusters.models import Cluster
from jobs.models import Run
from jobs.queues.waiting_runs import WaitingQueue, WaitingRun
from jobs.states import RunState


def in_order(
    cluster: Cluster, queue: WaitingQueue, used: Mapping[UserKey, float] | None = None
) -> Iterator[WaitingRun]:
    """Yields the queued runs of the cluster in the order in which they start; what it takes depends on how
    many of them are read. `used`: the use of the cluster by the workspaces with queued runs, None = as it is
    now. Three queries at most, however many runs there are."""
    if len(queue.runs) == 1:
        # As mostly: a run that has just come, for which there is room.
        yield from queue.runs.values()
        return
    # The order of those that wait does not depend on what others have used.
    if used is None:
        used = use_of(cluster, workspaces=queue.workspaces())
    for turn in queue.fair_queue.order(used, shares_of(cluster)):
        yield queue.of_turn(turn)


def keep_claims(heads: Set[str], queue: WaitingQueue) -> None:
    """Records which runs of the queue, by their ids, are at the head and keep their claims until they start
    or are outranked."""
    now, claimants = timezone.now(), {run.pk for run in queue.claimants()}
    new, over = sorted(heads - claimants), sorted(claimants - heads)
    if not new and not over:
        return
    with transaction.atomic():
        Run.objects.filter(pk__in=new, state=RunState.QUEUED).update(claimed_at=now)
        Run.objects.filter(pk__in=over).update(claimed_at=None)


def ordinal(number: int) -> str:
    """Returns "1st", "2nd", "3rd", "4th" …"""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else suffix}"
