"""One walk through the queue of a cluster: what holds for every kind of cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod

from django.db import transaction

from clusters import leases
from clusters.models import Cluster
from jobs import lifecycle
from jobs.checkpoints import origins, restoring
from jobs.models import Run
from jobs.placements.attempt_start import fail_run, record_why, start_attempt
from jobs.queues.demands import QueuedRun
from jobs.queues.waiting_runs import WaitingQueue, WaitingRun
from jobs.quotas.quota_check import QuotaBook, lock_quotas
from jobs.scheduling.environment_waits import EnvironmentWaits
from jobs.states import RunState
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.scheduler.rejections import Refusal


class StaleOffers(Exception):
    """The free resources that were read are out of date: another worker has placed a run on the nodes."""


class ClusterQueue(ABC):
    """Places the queued runs of one cluster one after the other; caches permissions between them."""

    def __init__(self, cluster: Cluster, quotas: QuotaBook) -> None:
        self._cluster = cluster
        self._quotas = quotas
        self._environments = EnvironmentWaits()
        self._forbidden: dict[int, Refusal | None] = {}

    def process(self, turn: QueuedRun) -> str:
        """Places the run, fails it, or records why it waits. Returns the sentence that holds for the other
        runs of its group, too, in the rest of this walk, "" if each of them may fare differently. Raises
        StaleOffers."""
        over_quota = self._quotas.refusal(turn.run, turn.needs)
        if over_quota is not None:
            # It claims nothing: others need not wait for what it may not have. A quota that was lowered after
            # the run was submitted fails no run.
            record_why(turn.run, over_quota.sentence)
            return over_quota.sentence
        unready = self._environments.refusal(turn.run, turn.spec.environment)
        if unready is not None:
            if unready.permanent:
                fail_run(turn.run, unready.sentence)
                return ""
            record_why(turn.run, unready.sentence)
            return unready.sentence
        if unsaved := restoring.unsaved_sentence(turn.run) or origins.late_sentence(turn.run, turn.spec):
            record_why(turn.run, unsaved)
            return ""
        answer = self._workspace_refusal(turn.run) or self._choose(turn)
        if not isinstance(answer, Refusal):
            self._place(turn, answer)
        elif answer.permanent:
            fail_run(turn.run, answer.sentence)
        else:
            sentence = self._why_waiting(turn, answer.sentence)
            record_why(turn.run, sentence)
            return sentence if self.waits_for_nobody(turn) else ""
        return ""

    def waits_for_nobody(self, turn: QueuedRun) -> bool:  # noqa: ARG002 - of one kind of cluster
        """Returns whether the run, which waits, neither claims anything nor waits behind another run."""
        return False

    def is_out_of_reach(self, needs: Demand) -> bool:  # noqa: ARG002 - as above
        """Returns whether nothing can change for runs with these needs in the rest of this walk, so that they
        need not be processed."""
        return False

    def pass_over(self, run: WaitingRun, needs: Demand) -> str:  # noqa: ARG002 - as above
        """Lets a run wait that is out of reach, and returns why it waits."""
        return ""

    @property
    def reserved_for(self) -> set[str]:
        """The ids of the runs that must be processed, because something is reserved for them."""
        return set()

    @abstractmethod
    def _choose(self, turn: QueuedRun) -> tuple[FreeNode, ...] | Refusal:
        """Returns the nodes for the run, as they were when they were chosen."""

    @abstractmethod
    def _why_waiting(self, turn: QueuedRun, sentence: str) -> str:
        """Returns why the run waits. `sentence`: of the refusal, which was not permanent."""

    @abstractmethod
    def _note_placement(self, turn: QueuedRun, placement: Placement) -> None:
        """Takes note of a placement."""

    @abstractmethod
    def finish(self, queue: WaitingQueue) -> None:
        """Ends the walk through `queue`, after which nothing can change for those that were not reached."""

    def _workspace_refusal(self, run: Run) -> Refusal | None:
        if run.workspace_id not in self._forbidden:
            self._forbidden[run.workspace_id] = leases.forbidden(self._cluster, run.workspace)
        return self._forbidden[run.workspace_id]

    def _place(self, turn: QueuedRun, expected: tuple[FreeNode, ...]) -> None:
        run = turn.run
        with transaction.atomic():
            # Lock order, the same for every writer: first the run, then the cluster.
            # Only a run that is still queued: a cancel may have come since the queue was read.
            current = lifecycle.lock_run(run.pk)
            if current is None or current.state != RunState.QUEUED:
                return
            # Read with the queue.
            current.workspace = run.workspace
            quotas = lock_quotas(run.workspace)
            if quotas is not None and quotas.refusal(run, turn.needs) is not None:
                raise StaleOffers
            number = current.attempt + 1
            result = leases.acquire(
                self._cluster,
                turn.needs,
                holder=run.pk,
                attempt=number,
                label=f"run {run.number}",
                workspace=run.workspace,
                person=run.created_by_id or 0,
                # As they were when they were chosen; another worker may have taken them.
                expected=expected,
            )
            if isinstance(result, Placement):
                start_attempt(current, turn.spec, number, result)
            elif not result.permanent:
                raise StaleOffers  # what was reserved stays so
        if isinstance(result, Placement):
            self._note_placement(turn, result)
            self._quotas.add_lease(run, result)
        else:
            fail_run(run, result.sentence)
