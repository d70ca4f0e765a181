"""The queue of a cluster in which the hub itself decides who is next."""

from __future__ import annotations

from typing import Protocol

from django.utils import timezone

from clusters import leases, offers
from clusters.models import Cluster
from jobs.attempts.quarantine import quarantined_leases
from jobs.models import Run
from jobs.queues import queue_order
from jobs.queues.demands import QueuedRun
from jobs.queues.waiting_runs import WaitingQueue, WaitingRun
from jobs.quotas.quota_check import QuotaBook
from jobs.scheduling import preemption, scaling_messages
from jobs.scheduling.cluster_queue import ClusterQueue, StaleOffers
from jobs.states import Reason
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.scheduler.queue import Line
from trainhub_launch.scheduler.rejections import Refusal, not_now

# A run with more in front of it does not say which is next to it: that would change all the time.
MANY = 100
BEHIND = "Waiting behind"


class _InLine(Protocol):
    """What a run that waits needs for the sentences of others."""

    @property
    def pk(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def workspace_id(self) -> int: ...
    @property
    def priority(self) -> int: ...


class HubQueue(ClusterQueue):
    """Keeps what waiting runs claim, so that later ones never delay them; caches offers between runs.

    `max_age_s`: what the nodes are may have been read so long ago. Raises StaleOffers where that could
    matter. `is_whole`: every run is to get the sentence that holds now; otherwise those that say already why
    they wait keep theirs."""

    def __init__(
        self, cluster: Cluster, quotas: QuotaBook, max_age_s: float = 0.0, *, is_whole: bool = True
    ) -> None:
        super().__init__(cluster, quotas)
        now, self._max_age_s, self._is_whole = timezone.now(), max_age_s, is_whole
        nodes = offers.offers(cluster, max_age_s=max_age_s)
        self._line: Line[_InLine] = Line(nodes, leases.releases(cluster, now))
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

    def waits_for_nobody(self, turn: QueuedRun) -> bool:
        return turn.run.pk not in self._reserved and self._line.in_front(turn.needs) is None

    def is_out_of_reach(self, needs: Demand) -> bool:
        return self._line.is_out_of_reach(needs)

    def pass_over(self, run: WaitingRun, needs: Demand) -> str:
        in_front = self._line.in_front(needs) if self._line.waiting_count <= MANY else None
        self._line.append(needs, run)
        return f"{BEHIND} more than {MANY} runs." if in_front is None else _behind(run, in_front)

    @property
    def reserved_for(self) -> set[str]:
        return set(self._reserved)

    def _note_placement(self, turn: QueuedRun, placement: Placement) -> None:
        self._line.grant(placement, turn.needs, self._reserved.pop(turn.run.pk, None))
        self._offers_by_workspace.clear()

    def finish(self, queue: WaitingQueue) -> None:
        """Ends the walk: records who is at the head, and releases what is reserved for runs that no longer
        wait, or could not start with all of it."""
        for holder in self._reserved:
            if holder not in queue.runs or holder not in self._expecting:
                leases.release(holder, 0)
        queue_order.keep_claims({run.pk for run in self._line.heads}, queue)

    def _why(self, turn: QueuedRun, *, is_head: bool) -> str:
        """Returns why a run waits that has nobody in front; may preempt others for it."""
        run = turn.run
        if run.pk in self._expecting and (sentence := preemption.pending_sentence(run)):
            return sentence
        if is_head and (sentence := preemption.preempt(self._cluster, run, turn.needs, self._line.nodes)):
            self._expecting.add(run.pk)
            return sentence
        if not self._is_whole and (sentence := _own_sentence(run)):
            # It names what is free now, and would be written again after each end of a run.
            return sentence
        nodes = self._nodes(run)
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


def _own_sentence(run: Run) -> str:
    """Returns what a run that waits for resources says already, "" if it has waited behind another one."""
    sentence = str(run.facts.get("detail", "")) if run.reason == Reason.NOT_FITTING_YET else ""
    return "" if sentence.startswith(BEHIND) else sentence


def _behind(run: _InLine, other: _InLine) -> str:
    name = f"run {other.number}" if other.workspace_id == run.workspace_id else "a run of another workspace"
    why = f" (priority {other.priority})" if other.priority != run.priority else ""
    return f"{BEHIND} {name}{why}."
