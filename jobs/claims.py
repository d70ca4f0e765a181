"""A node asks for its part of an attempt and is told once what to run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from clusters.models import Node
from jobs import environments, lifecycle
from jobs.ending import end
from jobs.models import Attempt, AttemptNode, Member, Run, Snapshot
from jobs.queueing import wake_soon
from jobs.states import Reason, RunState
from jobs.tokens import token_of
from trainhub_launch.errors import SpecError
from trainhub_launch.order import NodeOrder
from trainhub_launch.placement import PlacedNode, Placement
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import plan
from trainhub_launch.report import Interpreter
from trainhub_launch.spec import RunSpec

NONCE = re.compile(r"[0-9a-f]{32}\Z")
MAX_PORTS = 64
CLAIMABLE = (RunState.PROVISIONING, RunState.PREPARING, RunState.RUNNING)


class Refused(Exception):
    """The node is not to run this; the message says why."""


class Later(Refused):
    """Not yet: other nodes of the attempt have still to ask. The answer to a report asks again."""


def claim(  # noqa: PLR0917 - the claim as it comes over the wire
    node: Node, run_id: str, attempt: int, nonce: str, ports: Sequence[int], hub_url: str = ""
) -> NodeOrder:
    """The order of `node`; the same for the same nonce again (a lost answer). Raises Refused.

    `hub_url` is how the node itself reaches the hub.
    """
    if not NONCE.match(nonce):
        raise Refused("nonce must be 32 hexadecimal digits")
    offered = [int(port) for port in ports if 1024 <= int(port) <= 65535][:MAX_PORTS]
    try:
        with transaction.atomic():
            part = _take(node, run_id, attempt, nonce, offered)
            order = _order(part, hub_url or settings.PUBLIC_URL) if part else None
    except SpecError as error:
        # What was right when it was submitted no longer is: an interpreter that the node does not have any more.
        end(run_id, attempt, Reason.LAUNCH_FAILED, {"node": node.name, "detail": error.message})
        raise Refused(error.message) from error
    if order is None:
        raise Later("Other nodes of this attempt have still to ask for their part.")
    return order


def _take(node: Node, run_id: str, number: int, nonce: str, ports: list[int]) -> AttemptNode | None:
    """The node's part, claimed; None while other nodes' ports are unknown."""
    run = Run.objects.select_for_update().filter(pk=run_id).first()
    part = (
        AttemptNode.objects.select_related("attempt__run", "node")
        .filter(attempt__run_id=run_id, attempt__number=number, node=node)
        .first()
    )
    if run is None or part is None:
        raise Refused("This attempt is not placed on this node.")
    if run.attempt != number or part.attempt.ended_at is not None or part.settled_at is not None:
        raise Refused("This attempt is over.")
    if part.attempt.failing:
        raise Refused("The attempt has failed on another node.")
    if run.state not in CLAIMABLE:
        raise Refused(f"The run is {run.state}.")
    if part.claimed_at is not None:
        if part.nonce != nonce:
            raise Refused("This part has been claimed before.")
        return part
    if part.attempt.plan is None and not _plan_with_ports(run, part, ports):
        return None
    part.nonce, part.claimed_at = nonce, timezone.now()
    part.save(update_fields=["nonce", "claimed_at"])
    lifecycle.advance(run_id, RunState.PREPARING, actor=f"node {node.name}", attempt=number)
    return part


def _plan_with_ports(run: Run, part: AttemptNode, ports: list[int]) -> bool:
    """Make and store the plan that will run, once every node has said which of its ports are free."""
    part.ports = ports
    AttemptNode.objects.filter(pk=part.pk).update(ports=ports)
    others = list(AttemptNode.objects.filter(attempt=part.attempt).select_related("node").order_by("node_rank"))
    if not all(other.ports or other.pk == part.pk for other in others):
        return False
    final = plan(RunSpec.from_json(run.spec), placement_of(part.attempt), {other.node.name: other.ports for other in others})
    part.attempt.plan = final.to_json()
    Attempt.objects.filter(pk=part.attempt.pk).update(plan=part.attempt.plan)
    _note_members(part.attempt, final)
    for other in others:
        if other.pk != part.pk:
            wake_soon(other.node, run.pk, part.attempt.number)
    return True


def _note_members(attempt: Attempt, final: LaunchPlan) -> None:
    """The members are those of the provisional plan; only what a port could have moved is written again."""
    planned = {process.rank: process for process in final.processes}
    for member in Member.objects.filter(attempt=attempt):
        process = planned[member.rank]
        told = (process.log_name, list(process.gpus), process.decides)
        if (member.log_name, member.gpus, member.decides) != told:
            member.log_name, member.gpus, member.decides = told
            member.save(update_fields=["log_name", "gpus", "decides"])


def placement_of(attempt: Attempt) -> Placement:
    return Placement(tuple(PlacedNode(**{**item, "gpus": tuple(item["gpus"])}) for item in attempt.placement))


def interpreters_of(node: Node) -> tuple[Interpreter, ...]:
    return tuple(Interpreter(path=item["path"], version=item["version"]) for item in node.interpreters)


def _order(part: AttemptNode, hub_url: str) -> NodeOrder:
    run, attempt = part.attempt.run, part.attempt
    spec = RunSpec.from_json(run.spec)
    planned = LaunchPlan.from_json(attempt.plan or {})
    snapshot = Snapshot.objects.get(workspace_id=run.workspace_id, sha256=run.spec["source"]["id"])
    token = token_of(run.pk, attempt.number)
    return NodeOrder(
        run=run.pk,
        attempt=attempt.number,
        command=next(command for command in planned.commands if command.node == part.node.name),
        environment=environments.resolve(spec.environment, interpreters_of(part.node)),
        snapshot=snapshot.sha256,
        snapshot_size=snapshot.size_bytes,
        values=_values(run, attempt, hub_url, token, planned),
        masked=(token,),
        timeout_s=spec.limits.timeout_s,
        grace_s=spec.limits.grace_s,
        head=part.node_rank == 0,
    )


def _values(run: Run, attempt: Attempt, hub_url: str, token: str, planned: LaunchPlan) -> dict[str, Any]:
    values = {
        "launch:run_id": run.pk,
        "launch:attempt": str(attempt.number),
        "launch:url": hub_url.rstrip("/"),
        "launch:token": token,
    }
    return values | {f"launch:{name}": str(port) for name, port in planned.ports.items()}
