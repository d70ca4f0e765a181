"""The queue of a cluster that has one of its own outside of the hub, such as Slurm's."""

from __future__ import annotations

from clusters.backends.contract import OutsideScheduler, Request
from clusters.models import Cluster
from jobs.queues.demands import QueuedRun
from jobs.queues.waiting_runs import WaitingQueue
from jobs.quotas.quota_check import QuotaBook
from jobs.scheduling.cluster_queue import ClusterQueue
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.scheduler.rejections import Refusal


class OutsideQueue(ClusterQueue):
    """Passes each run on at once, and places it when its nodes are there."""

    def __init__(self, cluster: Cluster, quotas: QuotaBook, scheduler: OutsideScheduler) -> None:
        super().__init__(cluster, quotas)
        self._scheduler = scheduler
        self._waits = scheduler.waits(cluster)

    def _choose(self, turn: QueuedRun) -> tuple[FreeNode, ...] | Refusal:
        run = turn.run
        if sentence := self._waits.get((run.pk, run.attempt + 1)):
            return Refusal(sentence, "resources.cluster", permanent=False)
        return self._scheduler.place(
            Request(
                cluster=self._cluster,
                holder=run.pk,
                attempt=run.attempt + 1,
                label=f"run {run.number}",
                demand=turn.needs,
                workspace=run.workspace,
                person=run.created_by,
                grace_s=turn.spec.limits.grace_s,
            ),
        )

    def _why_waiting(self, turn: QueuedRun, sentence: str) -> str:  # noqa: ARG002 - it stands for itself
        return sentence

    def _note_placement(self, turn: QueuedRun, placement: Placement) -> None:
        """Nothing of its nodes is offered to others."""

    def finish(self, queue: WaitingQueue) -> None:
        """Who is next is decided outside."""
