"""From a queued run to processes: lease, attempt, plan, wake-up; and the verbs a person has."""

from __future__ import annotations

import dataclasses
import logging

from django.db import DatabaseError, transaction
from django.utils import timezone

from clusters import leases
from clusters.models import Cluster, Lease, Node
from jobs import lifecycle, logstore
from jobs.errors import Conflict
from jobs.models import Attempt, AttemptNode, Member, Run
from jobs.previewing import Preview, preview
from jobs.queueing import wake_soon
from jobs.states import FINAL, Reason, RunState
from jobs.submitting import SubmitRefused, clone_spec, submit
from jobs.tokens import token_of
from trainhub_launch.errors import SpecError
from trainhub_launch.placement import Placement, demand
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import plan
from trainhub_launch.spec import RunSpec
from workspaces import audit
from workspaces.models import User
from workspaces.tokens import digest

__all__ = ["Preview", "SubmitRefused", "cancel", "clone_spec", "delete", "launch", "launch_queued", "preview", "submit"]
log = logging.getLogger(__name__)


def launch(run_id: str) -> None:
    """Launch this run if its turn has come; it never overtakes an older one that waits for the same kind of place."""
    if Run.objects.filter(pk=run_id, state=RunState.QUEUED).exists():
        launch_queued()


def launch_queued() -> None:
    """Launch what fits, first come first served; the rest says what it waits for."""
    waiting: dict[tuple[str, bool], Run] = {}
    for run in Run.objects.queued().select_related("workspace"):
        resources = run.spec["resources"]
        place = (str(resources["cluster"]), bool(resources["gpus_per_node"]))
        ahead = waiting.get(place)
        if ahead is not None:
            name = f"run {ahead.number}" if ahead.workspace_id == run.workspace_id else "a run of another workspace"
            lifecycle.wait_because(run.pk, Reason.NOT_FITTING_YET, {"detail": f"Waiting behind {name}."})
        elif not _place_or_fail(run):
            waiting[place] = run


def cancel(run: Run, who: User) -> bool:
    """Ask for the run's end; at once where no node has it yet. False when it is over or being canceled already."""
    name = who.get_username()
    with transaction.atomic():
        current = Run.objects.select_for_update().get(pk=run.pk)
        parts = list(
            AttemptNode.objects.select_related("node").filter(attempt__run=run, attempt__number=current.attempt, settled_at=None)
        )
        unclaimed = not any(part.claimed_at for part in parts)
        early = current.state == RunState.QUEUED or (current.state == RunState.PROVISIONING and unclaimed)
        to = RunState.CANCELED if early else RunState.CANCEL_REQUESTED
        message = "" if early else f"{name} asked for the end of the run."
        if not lifecycle.advance(run.pk, to, Reason.CANCELED, facts={"who": name}, actor=name, message=message):
            return False
        audit.record(who, "run.cancel", str(run), run.workspace)
        for part in parts:
            if part.claimed_at is None:
                lifecycle.settle(part, run.pk, current.attempt, timezone.now())
        if not early:
            for part in parts:
                wake_soon(part.node, run.pk, current.attempt)
    return True


def delete(run: Run, who: User) -> None:
    """Remove an ended run with its logs and its list of outputs. Raises Conflict while anything of it may still run."""
    with transaction.atomic():
        current = Run.objects.select_for_update().get(pk=run.pk)
        if current.state not in FINAL:
            raise Conflict(f"Run {run.number} is {current.state}; cancel it before you delete it.")
        held = Lease.objects.filter(holder=run.pk, released_at=None).select_related("node").first()
        if held is not None:
            raise Conflict(f"Node {held.node} has not yet proved that run {run.number} is gone there; try again when it reports.")
        audit.record(who, "run.delete", str(run), run.workspace)
        current.delete()
        transaction.on_commit(lambda: logstore.remove(run.pk))


def _place_or_fail(run: Run) -> bool:
    """A mistake of ours about one run must not keep the others waiting for ever."""
    try:
        return _place(run)
    except DatabaseError:
        raise
    except Exception:
        log.exception("Run %s could not be launched", run.pk)
        return _fail(run, Reason.INTERNAL, f"run {run.pk}")


def _place(run: Run) -> bool:
    """Whether the run is out of the way: launched, failed for good, or no longer queued."""
    spec = RunSpec.from_json(run.spec)
    cluster = Cluster.objects.filter(name=spec.resources.cluster).first()
    if cluster is None:
        return _fail(run, Reason.DOES_NOT_FIT, f"There is no cluster {spec.resources.cluster!r} any more.")
    with transaction.atomic():
        # Locks in the order that every writer takes them: run, then cluster.
        current = Run.objects.select_for_update().filter(pk=run.pk, state=RunState.QUEUED).first()
        if current is None:
            return True
        number = current.attempt + 1
        found = leases.acquire(
            cluster, demand(spec), holder=run.pk, attempt=number, label=f"run {run.number}", workspace=run.workspace
        )
        if isinstance(found, Placement):
            return _start(current, spec, number, found)
    if found.permanent:
        return _fail(run, Reason.DOES_NOT_FIT, found.sentence)
    lifecycle.wait_because(run.pk, Reason.NOT_FITTING_YET, {"detail": found.sentence})
    return False


def _start(run: Run, spec: RunSpec, number: int, placement: Placement) -> bool:
    """Write down the attempt and wake its nodes. The plan is provisional until they have named their free ports."""
    try:
        planned = plan(spec, placement)
    except SpecError as error:
        leases.release(run.pk, number)
        return _fail(run, Reason.DOES_NOT_FIT, error.message)
    attempt = Attempt.objects.create(
        run=run, number=number, placement=[dataclasses.asdict(node) for node in placement.nodes],
        token_digest=digest(token_of(run.pk, number)),
    )
    Run.objects.filter(pk=run.pk).update(attempt=number)
    nodes = Node.objects.in_bulk([node.name for node in placement.nodes], field_name="name")
    AttemptNode.objects.bulk_create(
        AttemptNode(attempt=attempt, node=nodes[placed.name], node_rank=rank) for rank, placed in enumerate(placement.nodes)
    )
    Member.objects.bulk_create(_members(attempt, planned, nodes))
    lifecycle.advance(run.pk, RunState.PROVISIONING, message=f"Placed on {', '.join(nodes)}.", attempt=number)
    for node in nodes.values():
        wake_soon(node, run.pk, number)
    return True


def _members(attempt: Attempt, planned: LaunchPlan, nodes: dict[str, Node]) -> list[Member]:
    return [
        Member(
            attempt=attempt, node=nodes[command.node], rank=process.rank, local_rank=process.local_rank, role=process.role,
            log_name=process.log_name, gpus=list(process.gpus), decides=process.decides,
        )
        for command in planned.commands
        for process in command.processes
    ]


def _fail(run: Run, reason: Reason, detail: str) -> bool:
    return lifecycle.advance(run.pk, reason.final_state, reason, facts={"detail": detail})
