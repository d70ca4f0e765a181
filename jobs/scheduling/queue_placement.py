"""The queue becomes attempts: whose turn it is, what that run gets, and why the others wait."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from django.db import DatabaseError, transaction
from django.utils import timezone

from clusters import leases
from clusters.models import Cluster, Node
from jobs import lifecycle
from jobs.attempts.quarantine import quarantined_leases
from jobs.models import Attempt, AttemptNode, Member, Run
from jobs.scheduling import scaling_messages
from jobs.states import Reason, RunState
from jobs.task_messages import wake_soon
from jobs.tokens import token_of
from trainhub_launch.errors import SpecError
from trainhub_launch.offers import Demand, FreeNode
from trainhub_launch.placement import Placement, demand
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import plan
from trainhub_launch.refusals import Refusal, not_now
from trainhub_launch.spec import RunSpec
from trainhub_launch.waiting import Line
from workspaces.tokens import digest

log = logging.getLogger(__name__)
MOST_WALKS = 50
"""Every walk that has to begin anew means that somebody else placed a run; the next tick walks again
anyway."""


class Stale(Exception):
    """The nodes are no longer as they were read: another worker has placed a run on them."""


@dataclass(frozen=True)
class Turn:
    run: Run
    spec: RunSpec
    wanted: Demand


def walk(only: Collection[str] | None = None) -> None:
    """Place what fits, in the order of the queue, in all clusters or only in those of these names.

    The rest says what it waits for. Two workers may walk at the same time.
    """
    for _ in range(MOST_WALKS):
        clusters = {cluster.name: cluster for cluster in Cluster.objects.filter(deleted_at=None)}
        queues: dict[str, list[Turn]] = {}
        for turn in turns(only):
            queues.setdefault(turn.spec.resources.cluster, []).append(turn)
        try:
            for name, queue in queues.items():
                _walk(clusters.get(name), name, queue)
        except Stale:
            continue
        return


def turns(only: Collection[str] | None = None) -> Iterator[Turn]:
    """The queued runs of all clusters, or of those of these names, in order; one that cannot be read is
    failed."""
    queued = Run.objects.queued().select_related("workspace").defer("preview")
    for run in queued if only is None else queued.filter(spec__resources__cluster__in=only):
        try:
            spec = RunSpec.from_json(run.spec)
            yield Turn(run, spec, demand(spec))
        except Exception:
            _our_mistake(run)


def _walk(cluster: Cluster | None, name: str, queue: list[Turn]) -> None:
    queued = None if cluster is None else Queue(cluster)
    for turn in queue:
        try:
            if queued is None:
                fail(turn.run, f"There is no cluster {name!r} any more.")
            else:
                queued.take(turn)
        except (DatabaseError, Stale):
            raise
        except Exception:
            # A mistake of ours about one run must not keep the others waiting for ever.
            _our_mistake(turn.run)


class Queue:
    """The runs of one cluster, taken one after the other. What is read for one serves the others as long as
    it holds."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._line: Line[Run] = Line(leases.offers(cluster))
        self._forbidden: dict[int, Refusal | None] = {}
        self._seen_by: dict[int, tuple[FreeNode, ...]] = {}

    def take(self, turn: Turn) -> None:
        """Place the run, fail it for good, or say why it waits. Raises Stale."""
        refusal = self._of_workspace(turn.run)
        answer = refusal or self._line.ask(turn.wanted)
        if isinstance(answer, Placement):
            self._place(turn, answer)
        elif answer.permanent:
            fail(turn.run, answer.sentence)
        else:
            self._explain(turn, self._line.in_front(turn.wanted))
            self._line.wait(turn.wanted, turn.run)

    def _of_workspace(self, run: Run) -> Refusal | None:
        if run.workspace_id not in self._forbidden:
            self._forbidden[run.workspace_id] = leases.forbidden(self._cluster, run.workspace)
        return self._forbidden[run.workspace_id]

    def _place(self, turn: Turn, chosen: Placement) -> None:
        run = turn.run
        with transaction.atomic():
            # Locks in the order that every writer takes them: run, then cluster.
            current = Run.objects.select_for_update().filter(pk=run.pk, state=RunState.QUEUED).first()
            if current is None:
                return
            number = current.attempt + 1
            found = leases.acquire(
                self._cluster,
                turn.wanted,
                holder=run.pk,
                attempt=number,
                label=f"run {run.number}",
                workspace=run.workspace,
                seen=self._line.chosen(chosen),
            )
            if isinstance(found, Placement):
                start(current, turn.spec, number, found)
        if isinstance(found, Placement):
            self._line.grant(found)
            self._seen_by.clear()
        elif found.permanent:
            fail(run, found.sentence)
        else:
            raise Stale

    def _explain(self, turn: Turn, in_front: Run | None) -> None:
        """Whoever waits behind another names that one: it is told once, however often those in front of it
        change."""
        run = turn.run
        sentence = _behind(run, in_front) if in_front else self._why(turn)
        if run.reason != Reason.NOT_FITTING_YET or run.facts != {"detail": sentence}:
            lifecycle.wait_because(run.pk, Reason.NOT_FITTING_YET, {"detail": sentence})

    def _why(self, turn: Turn) -> str:
        nodes = self._nodes(turn.run)
        return (
            scaling_messages.sentence(self._cluster, turn.wanted, nodes, timezone.now())
            or not_now(turn.wanted, nodes).sentence
        )

    def _nodes(self, run: Run) -> tuple[FreeNode, ...]:
        if run.workspace_id not in self._seen_by:
            self._seen_by[run.workspace_id] = leases.offers(self._cluster, run.workspace, quarantined_leases())
        return self._seen_by[run.workspace_id]


def start(run: Run, spec: RunSpec, number: int, placement: Placement) -> None:
    """Write down the attempt and wake its nodes. The plan is provisional until they have named their free
    ports."""
    try:
        planned = plan(spec, placement)
    except SpecError as error:
        leases.release(run.pk, number)
        fail(run, error.message)
        return
    attempt = Attempt.objects.create(
        run=run,
        number=number,
        placement=[dataclasses.asdict(node) for node in placement.nodes],
        token_digest=digest(token_of(run.pk, number)),
    )
    Run.objects.filter(pk=run.pk).update(attempt=number)
    nodes = Node.objects.in_bulk([node.name for node in placement.nodes], field_name="name")
    AttemptNode.objects.bulk_create(
        AttemptNode(attempt=attempt, node=nodes[placed.name], node_rank=rank)
        for rank, placed in enumerate(placement.nodes)
    )
    Member.objects.bulk_create(_members(attempt, planned, nodes))
    named = ", ".join(node.name for node in placement.nodes)
    lifecycle.advance(run.pk, RunState.PROVISIONING, message=f"Placed on {named}.", attempt=number)
    for node in nodes.values():
        wake_soon(node, run.pk, number)


def fail(run: Run, detail: str, reason: Reason = Reason.DOES_NOT_FIT) -> None:
    lifecycle.advance(run.pk, reason.final_state, reason, facts={"detail": detail})


def _members(attempt: Attempt, planned: LaunchPlan, nodes: dict[str, Node]) -> list[Member]:
    return [
        Member(
            attempt=attempt,
            node=nodes[command.node],
            rank=process.rank,
            local_rank=process.local_rank,
            role=process.role,
            log_name=process.log_name,
            gpus=list(process.gpus),
            decides=process.decides,
        )
        for command in planned.commands
        for process in command.processes
    ]


def _behind(run: Run, other: Run) -> str:
    name = f"run {other.number}" if other.workspace_id == run.workspace_id else "a run of another workspace"
    why = f" (priority {other.priority})" if other.priority != run.priority else ""
    return f"Waiting behind {name}{why}."


def _our_mistake(run: Run) -> None:
    log.exception("Run %s could not be launched", run.pk)
    fail(run, f"run {run.pk}", Reason.INTERNAL)
