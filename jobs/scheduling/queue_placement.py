"""Places queued runs on nodes in queue order, and records why the others wait."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterable, Iterator

from django.db import DatabaseError, transaction
from django.utils import timezone

from clusters import leases, offers
from clusters.models import Cluster, Node
from datastores.run_inputs import input_places
from jobs import lifecycle
from jobs.attempts.quarantine import quarantined_leases
from jobs.checkpoints import origins, restoring, stores
from jobs.models import Attempt, AttemptNode, Member, Run
from jobs.quotas.quota_check import QuotaBook, lock_quotas
from jobs.scheduling import preemption, queue_order, scaling_messages
from jobs.scheduling.environment_waits import EnvironmentWaits
from jobs.scheduling.queue_order import QueuedRun, with_demands
from jobs.states import Reason, RunState
from jobs.stored_outputs.folders import add_output_folder, find_output_store
from jobs.task_messages import wake_soon
from jobs.tokens import attempt_token
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import demand
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import plan
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.scheduler.queue import Line
from trainhub_launch.scheduler.rejections import Refusal, not_now
from trainhub_launch.spec import RunSpec
from trainhub_launch.spec_reader import read_spec
from workspaces.authentication.token_text import digest

log = logging.getLogger(__name__)
# A pass restarts whenever another worker has placed a run meanwhile; the next tick continues in any case.
MAX_WALKS = 50


class StaleOffers(Exception):
    """The free resources that were read are out of date: another worker has placed a run on the nodes."""


def place_queued(only: Collection[str] | None = None) -> None:
    """Places the runs that fit, in queue order, in all clusters or only in those named.

    The others get a sentence about what they wait for. Several workers may call this at the same time.
    """
    for _ in range(MAX_WALKS):
        clusters = {cluster.name: cluster for cluster in Cluster.objects.filter(deleted_at=None)}
        quotas = QuotaBook()
        queues: dict[str, list[QueuedRun]] = {}
        for turn in queued_runs(only):
            queues.setdefault(turn.spec.resources.cluster, []).append(turn)
        try:
            for name, queue in queues.items():
                _place_queue(clusters.get(name), name, queue, quotas)
        except StaleOffers:
            continue
        return


def queued_runs(only: Collection[str] | None = None) -> Iterator[QueuedRun]:
    """Yields the queued runs of all clusters, or of those named, in order; fails those with an unreadable
    spec."""
    # The preview holds the whole plan, which may be long, and is not needed here.
    queued = Run.objects.queued().select_related("workspace", "created_by").defer("preview")
    items = []
    for run in queued if only is None else queued.filter(spec__resources__cluster__in=only):
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


def _place_queue(cluster: Cluster | None, name: str, queue: list[QueuedRun], quotas: QuotaBook) -> None:
    queued = None if cluster is None else ClusterQueuePlacement(cluster, quotas)
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


class ClusterQueuePlacement:
    """Places the queued runs of one cluster one after the other; caches offers and permissions between
    them."""

    def __init__(self, cluster: Cluster, quotas: QuotaBook) -> None:
        self._cluster = cluster
        self._quotas = quotas
        self._environments = EnvironmentWaits()
        now = timezone.now()
        self._line: Line[Run] = Line(offers.offers(cluster), leases.releases(cluster, now))
        self._reserved = leases.reservations(cluster)
        # Those for which something is still to come; what comes during the walk is used in the next.
        self._expecting = {holder for holder in self._reserved if leases.promised_by(holder)}
        self._forbidden: dict[int, Refusal | None] = {}
        self._offers_by_workspace: dict[int, tuple[FreeNode, ...]] = {}

    def process(self, turn: QueuedRun) -> None:
        """Places the run, fails it, or records why it waits. Raises StaleOffers."""
        over_quota = self._quotas.refusal(turn.run, turn.needs)
        if over_quota is not None:
            # It claims nothing: others need not wait for what it may not have. A quota that was lowered after
            # the run was submitted fails no run.
            _record_why(turn.run, over_quota.sentence)
            return
        unready = self._environments.refusal(turn.run, turn.spec.environment)
        if unready is not None:
            if unready.permanent:
                fail_run(turn.run, unready.sentence)
            else:
                _record_why(turn.run, unready.sentence)
            return
        if unsaved := restoring.unsaved_sentence(turn.run) or origins.late_sentence(turn.run, turn.spec):
            _record_why(turn.run, unsaved)
            return
        own = self._reserved.get(turn.run.pk)
        refusal = self._workspace_refusal(turn.run)
        if refusal is None:
            answer = self._line.ask_with(turn.needs, own) if own else self._line.ask(turn.needs)
        else:
            answer = refusal
        if isinstance(answer, Placement):
            self._place(turn, answer)
        elif answer.permanent:
            fail_run(turn.run, answer.sentence)
        else:
            in_front = self._line.in_front(turn.needs)
            # What it waits for is reserved in the line, so that a smaller run behind it cannot take it for
            # ever.
            is_head = self._line.wait(turn.needs, turn.run)
            _record_why(
                turn.run, _behind(turn.run, in_front) if in_front else self._why(turn, is_head=is_head)
            )

    def _workspace_refusal(self, run: Run) -> Refusal | None:
        if run.workspace_id not in self._forbidden:
            self._forbidden[run.workspace_id] = leases.forbidden(self._cluster, run.workspace)
        return self._forbidden[run.workspace_id]

    def _place(self, turn: QueuedRun, chosen: Placement) -> None:
        run = turn.run
        with transaction.atomic():
            # Lock order, the same for every writer: first the run, then the cluster.
            # Only a run that is still queued: a cancel may have come since the queue was read.
            current = Run.objects.select_for_update().filter(pk=run.pk, state=RunState.QUEUED).first()
            if current is None:
                return
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
                # The nodes that were free when the line was computed; another worker may have taken them.
                expected=self._line.chosen(chosen),
            )
            if isinstance(result, Placement):
                start_attempt(current, turn.spec, number, result)
            elif not result.permanent:
                raise StaleOffers  # what was reserved stays so
        if isinstance(result, Placement):
            self._line.grant(result, turn.needs, self._reserved.pop(run.pk, None))
            self._quotas.add_lease(run, result)
            self._offers_by_workspace.clear()
        else:
            fail_run(run, result.sentence)

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
                self._cluster, run.workspace, quarantined_leases()
            )
        return self._offers_by_workspace[run.workspace_id]


def start_attempt(run: Run, spec: RunSpec, number: int, placement: Placement) -> None:
    """Creates the attempt and wakes its nodes. The plan is provisional until they report their free ports."""
    try:
        launch_plan = plan(spec, placement)
        # Kept with the attempt: all its nodes read the same, whatever becomes of the datastore.
        inputs = input_places(spec, run.workspace)
        output_store = find_output_store(spec, run.workspace)
        checkpoints_go = stores.attempt_columns(run, spec)
        origins.copy_late(run, spec)
    except SpecError as error:
        # The attempt is not made, but the leases were just acquired in the same transaction.
        leases.release(run.pk, number)
        fail_run(run, error.message)
        return
    attempt = Attempt.objects.create(
        run=run,
        number=number,
        placement=[dataclasses.asdict(node) for node in placement.nodes],
        # The token itself is not stored, and is computed again when a node claims.
        token_digest=digest(attempt_token(run.pk, number)),
        restores=restoring.newest(run),
        **checkpoints_go,
        **inputs.to_columns(),
    )
    add_output_folder(attempt, output_store, spec)
    Run.objects.filter(pk=run.pk).update(attempt=number, claimed_at=None)
    nodes = Node.objects.in_bulk([node.name for node in placement.nodes], field_name="name")
    AttemptNode.objects.bulk_create(
        AttemptNode(attempt=attempt, node=nodes[placed.name], node_rank=rank)
        for rank, placed in enumerate(placement.nodes)
    )
    Member.objects.bulk_create(_members(attempt, launch_plan, nodes))
    node_names = ", ".join(node.name for node in placement.nodes)
    message = f"Placed on {node_names}."
    if attempt.restores is not None:
        message += f" It goes on from {attempt.restores}."
    lifecycle.advance(run.pk, RunState.PROVISIONING, message=message, attempt=number)
    for node in nodes.values():
        wake_soon(node, run.pk, number)


def _record_why(run: Run, sentence: str) -> None:
    if run.reason != Reason.NOT_FITTING_YET or run.facts != {"detail": sentence}:
        lifecycle.set_waiting_reason(run.pk, Reason.NOT_FITTING_YET, {"detail": sentence})


def fail_run(run: Run, detail: str, reason: Reason = Reason.DOES_NOT_FIT) -> None:
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


def _fail_internal(run: Run) -> None:
    log.exception("Run %s could not be launched", run.pk)
    fail_run(run, f"run {run.pk}", Reason.INTERNAL)
