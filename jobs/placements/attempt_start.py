"""Makes the attempt of a run that has its nodes, and records why runs wait or fail before that."""

from __future__ import annotations

import dataclasses

from clusters import leases
from clusters.models import Node
from clusters.node_facts import nodes_by_name
from datastores.run_inputs import input_places
from jobs import lifecycle
from jobs.checkpoints import origins, restoring, stores
from jobs.models import Attempt, AttemptNode, Member, Run
from jobs.states import Reason, RunState
from jobs.stored_outputs.folders import add_output_folder, find_output_store
from jobs.task_messages import wake_soon
from jobs.tokens import attempt_token
from trainhub_launch.errors import SpecError
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import plan
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec
from workspaces.authentication.token_text import digest
from workspaces.database.compiled_writes import update_rows


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
    update_rows(Run, {"pk": run.pk}, attempt=number, claimed_at=None)
    nodes = nodes_by_name(node.name for node in placement.nodes)
    AttemptNode.objects.bulk_create(
        AttemptNode(attempt=attempt, node=nodes[placed.name], node_rank=rank)
        for rank, placed in enumerate(placement.nodes)
    )
    Member.objects.bulk_create(_members(attempt, launch_plan, nodes))
    node_names = ", ".join(node.name for node in placement.nodes)
    message = f"Placed on {node_names}."
    if attempt.restores is not None:
        message += f" It goes on from {attempt.restores}."
    run.attempt = number
    lifecycle.advance(run.pk, RunState.PROVISIONING, message=message, attempt=number, locked=run)
    for node in nodes.values():
        wake_soon(node, run.pk, number)


def record_why(run: Run, sentence: str) -> None:
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
