"""The queue of a cluster in which the hub itself decides who is next."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils import timezone

from clusters import leases, offers
from clusters.models import Cluster
from jobs.attempts.quarantine import quarantined_leases
from jobs.models import Run
from jobs.quotas.quota_check import QuotaBook
from jobs.scheduling import preemption, queue_order, scaling_messages
from jobs.scheduling.cluster_queue import ClusterQueue, StaleOffers
from jobs.scheduling.queue_order import QueuedRun
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.scheduler.queue import Line
from trainhub_launch.scheduler.rejections import Refusal, not_now


class HubQueue(ClusterQueue):
    """Keeps what waiting runs claim, so that later ones never delay them; caches offers between runs.

    `max_age_s`: what the nodes are may have been read so long ago. Raises StaleOffers where that could
    matter."""

    def __init__(self, cluster: Cluster, quotas: QuotaBook, max_age_s: float = 0.0) -> None:
        super().__init__(cluster, quotas)
        now, self._max_age_s = timezone.now(), max_age_s
        nodes = offers.offers(cluster, max_age_s=max_age_s)
        self._line: Line[Run] = Line(nodes, leases.releases(cluster, now))
        self._reserved = leases.reservations(cluster)
        # Those for which something is still to come; what comes during the walk is used in the next.
        self._expecting = {holder for holder in self._reserved if leases.promised_by(holder)}
        self._offers_by_workspace: dict[int, tuple[FreeNode, ...]] = {}

    def _choose(self, turn: QueuedRun) -> tuple[FreeNode, ...] | Refusal:
        own = self._reserved.get(turn.run.pk)
        answer = self._line.ask_with(turn.needs, own) if own else self._line.ask(turn.needs)
        if not isinstance(answer, Refusal):
            return self._line.chosen(answer)
        # A node that has just joined may be the one that is large enough: no run fails for what is out of
        # date.
        if answer.permanent and self._max_age_s:
            raise StaleOffers
        return answer

    def _why_waiting(self, turn: QueuedRun, sentence: str) -> str:  # noqa: ARG002 - of one node alone
        in_front = self._line.in_front(turn.needs)
        # What it waits for is reserved in the line, so that a smaller run behind it cannot take it for ever.
        is_head = self._line.wait(turn.needs, turn.run)
        return _behind(turn.run, in_front) if in_front else self._why(turn, is_head=is_head)

    def _note_placement(self, turn: QueuedRun, placement: Placement) -> None:
        self._line.grant(placement, turn.needs, self._reserved.pop(turn.run.pk, None))
        self._offers_by_workspace.clear()

    def finish(self, queue: Iterable[QueuedRun]) -> None:
        """Ends the walk: records who is at the head, and releases what is reserved for runs that no longer
        wait, or could not start with all of it."""
        waiting = {turn.run.pk for turn in queue}
        for holder in self._reserved:
            if holder not in waiting or holder not in self._expecting:
                leases.release(holder, 0)
        queue_order.keep_claims(self._line.heads.keys(), list(queue))

    def _why(self, turn: QueuedRun, *, is_head: bool) -> str:
        """Returns why a run waits that has nobody in front; may preempt others for it."""
        run, nodes = turn.run, self._nodes(turn.run)
        if run.pk in self._expecting and (sentence := preemption.pending_sentence(run)):
            return sentence
        if is_head and (sentence := preemption.preempt(self._cluster, run, turn.needs, self._line.nodes)):
            self._expecting.add(run.pk)
            return sentence
        return (
            scaling_messages.waiting_sentence(self._cluster, turn.needs, nodes, timezone.now())
            or not_now(turn.needs, nodes).sentence
        )

    def _nodes(self, run: Run) -> tuple[FreeNode, ...]:
        if run.workspace_id not in self._offers_by_workspace:
            self._offers_by_workspace[run.workspace_id] = offers.offers(
                self._cluster, run.workspace, quarantined_leases(), max_age_s=self._max_age_s
            )
        return self._offers_by_workspace[run.workspace_id]


def _behind(run: Run, other: Run) -> str:
    name = f"run {other.number}" if other.workspace_id == run.workspace_id else "a run of another workspace"
    why = f" (priority {other.priority})" if other.priority != run.priority else ""
    return f"Waiting behind {name}{why}."
