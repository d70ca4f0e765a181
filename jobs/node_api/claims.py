"""Answers a node's claim of its part of an attempt with the order what to run.

The only node of a run gets its order once. Each of several nodes gets it twice: first to prepare, and to
start once all nodes are ready."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters.models import Node
from clusters.node_reports.inventory import interpreters_of
from environments import catalog
from jobs import lifecycle
from jobs.attempts import final_plan
from jobs.attempts.attempt_end import end_attempt
from jobs.builds.models import is_build_id
from jobs.checkpoints import restoring
from jobs.data_orders.models import is_data_order_id
from jobs.image_registry import tickets
from jobs.models import Attempt, AttemptNode, Run
from jobs.node_api.build_claims import claim_build
from jobs.node_api.probes.probe_claims import claim_probe
from jobs.node_orders.refusals import Later as Later  # noqa: PLC0414  # exported
from jobs.node_orders.refusals import Refused as Refused  # noqa: PLC0414  # exported
from jobs.order_downloads import dataset_files
from jobs.order_downloads.package_tickets import package_access
from jobs.peers.tickets import with_peers
from jobs.sources.snapshots import snapshots_of
from jobs.states import Reason, RunState
from jobs.stored_outputs.folders import output_order
from jobs.tokens import attempt_token
from trainhub_launch.data.downloads import DataDownload, InputList
from trainhub_launch.data.shares import InputMount
from trainhub_launch.errors import SpecError
from trainhub_launch.order import NodeOrder
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.spec_reader import read_spec
from trainhub_launch.states import Phase
from workspaces.database.compiled_queries import compiled
from workspaces.database.compiled_writes import update_rows

NONCE = re.compile(r"[0-9a-f]{32}\Z")
CLAIMABLE = (RunState.PROVISIONING, RunState.PREPARING, RunState.RUNNING)


def claim(  # noqa: PLR0917 - the claim as it comes over the wire
    node: Node, run_id: str, attempt: int, nonce: str, ports: Sequence[int], hub_url: str = ""
) -> NodeOrder:
    """Returns the order for `node`; a repeated claim with the same nonce gets the same order. Raises Refused.

    `ports`: free ports of the node. On several nodes they enter the plan only once the node is ready.
    `hub_url`: the URL by which the node reaches the hub."""
    if not NONCE.match(nonce):
        raise Refused("nonce must be 32 hexadecimal digits")
    if is_build_id(run_id):
        return claim_build(node, run_id, attempt, nonce, hub_url or settings.API_URL)
    if is_data_order_id(run_id):
        return claim_probe(node, run_id, attempt, nonce, hub_url or settings.API_URL)
    try:
        with transaction.atomic():
            # The row of the run is locked first, as everywhere: a cancel and a claim at the same moment come
            # one after the other.
            part = _take(node, run_id, attempt, nonce, final_plan.usable_ports([int(port) for port in ports]))
            return _order(part, hub_url or settings.API_URL)
    except SpecError as error:
        # What was right when it was submitted no longer is: an interpreter that the node does not have any
        # more.
        end_attempt(run_id, attempt, Reason.LAUNCH_FAILED, {"node": node.name, "detail": error.message})
        raise Refused(error.message) from error


def _take(node: Node, run_id: str, number: int, nonce: str, ports: list[int]) -> AttemptNode:
    """Claims the node's part if it is not claimed yet, and returns it. Raises Refused."""
    run = lifecycle.lock_run(run_id)
    part = next(iter(_parts(run_id, number, node.pk)), None)
    if run is None or part is None:
        raise Refused("This attempt is not placed on this node.")
    if run.attempt != number or part.attempt.ended_at is not None or part.settled_at is not None:
        raise Refused("This attempt is over.")
    if part.attempt.failing:
        raise Refused("The attempt has failed on another node.")
    if part.attempt.served:
        raise Refused("The ranks that decide have finished without this node.")
    # A part of several nodes may be claimed while the run is Preparing or Running already, because another
    # node was faster.
    if run.state not in CLAIMABLE:
        raise Refused(f"The run is {run.state}.")
    if part.claimed_at is None:
        # The first claim wins. Another nonce means another agent with the same token, or one that has lost
        # its disk.
        _claim_first(run, part, nonce, ports)
    elif part.nonce != nonce:
        raise Refused("This part has been claimed before.")
    elif part.phase == Phase.READY and part.attempt.plan is None:
        raise Later("Other nodes of this attempt are not ready yet.")
    return part


@compiled
def _parts(run_id: str, number: int, node_id: int) -> QuerySet[AttemptNode]:
    parts = AttemptNode.objects.select_related("attempt__run__created_by", "attempt__run__workspace", "node")
    return parts.filter(attempt__run_id=run_id, attempt__number=number, node_id=node_id)


def _claim_first(run: Run, part: AttemptNode, nonce: str, ports: list[int]) -> None:
    if len(part.attempt.placement) == 1:
        # On a single node the final plan is known with its ports, so one claim is enough.
        part.ports = ports
        final_plan.finalize_plan(run, part.attempt, {part.node.name: ports})
    part.nonce, part.claimed_at = nonce, timezone.now()
    update_rows(AttemptNode, {"pk": part.pk}, nonce=nonce, claimed_at=part.claimed_at, ports=part.ports)
    lifecycle.advance(
        run.pk, RunState.PREPARING, actor=f"node {part.node.name}", attempt=part.attempt.number, locked=run
    )


def _order(part: AttemptNode, hub_url: str) -> NodeOrder:
    run, attempt = part.attempt.run, part.attempt
    spec = read_spec(run.spec)
    planned = (
        LaunchPlan.from_json(attempt.plan) if attempt.plan else final_plan.provisional_plan(run, attempt)
    )
    # Made anew for each answer and stored only as a digest: a claim that is repeated gets the same token,
    # since it is derived from run and attempt.
    (snapshot,) = snapshots_of(run.workspace_id, run.spec["source"]["id"])
    token = attempt_token(run.pk, attempt.number)
    environment = catalog.resolve(spec.environment, interpreters_of(part.node), run.workspace)
    index, ticket = package_access(
        run.pk, attempt.number, spec.environment, run.workspace, part.node, hub_url
    )
    downloads, data_ticket = dataset_files.order_downloads(attempt, hub_url)
    image_registry = tickets.registry_of_part(part, hub_url) if environment.image else None
    return NodeOrder(
        run=run.pk,
        attempt=attempt.number,
        command=next(command for command in planned.commands if command.node == part.node.name),
        environment=environment,
        snapshot=snapshot.sha256,
        snapshot_size=snapshot.size_bytes,
        values={
            **_values(run, attempt, hub_url, token, planned),
            # For nodes of the last version; others know the whole path.
            "launch:checkpoint_dir": spec.checkpoint.path,
        },
        # The node replaces these texts in logs and records: a script may print its environment.
        masked=_masked(token, ticket or data_ticket, image_registry.token if image_registry else ""),
        timeout_s=spec.limits.timeout_s,
        grace_s=spec.limits.grace_s,
        head=part.node_rank == 0,
        go=attempt.plan is not None,
        memory_bytes=spec.resources.memory,
        cpus=spec.resources.cpus,
        disk_bytes=spec.resources.disk,
        # A service account is nobody's: a Unix account of that name would not be meant.
        person=run.created_by.username if run.created_by and not run.created_by.is_service_account else "",
        package_index=index,
        package_ticket=ticket,
        image_registry=image_registry,
        checkpoint=restoring.order_of(part, spec),
        inputs=attempt.inputs,
        mounts={name: InputMount.from_json(item) for name, item in attempt.mounts.items()},
        downloads=with_peers(part, downloads, hub_url),
        lists={name: InputList.from_json(item) for name, item in attempt.input_lists.items()},
        outputs=output_order(part),
        references={name: DataDownload.from_json(item) for name, item in attempt.references.items()},
    )


def _masked(*texts: str) -> tuple[str, ...]:
    return tuple(filter(None, texts))


def _values(run: Run, attempt: Attempt, hub_url: str, token: str, planned: LaunchPlan) -> dict[str, Any]:
    values = {
        "launch:run_id": run.pk,
        "launch:attempt": str(attempt.number),
        "launch:url": hub_url.rstrip("/"),
        "launch:token": token,
    }
    return values | {f"launch:{name}": str(port) for name, port in planned.ports.items()}
