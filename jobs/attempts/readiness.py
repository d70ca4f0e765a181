"""The two-phase start: once every node of a run is ready, the hub makes the final plan and all nodes
start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs import lifecycle
from jobs.attempts import final_plan
from jobs.attempts.attempt_end import end_attempt
from jobs.models import Attempt, AttemptNode, Run
from jobs.states import Reason, RunState
from jobs.task_messages import wake_soon
from trainhub_launch.errors import SpecError
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.processes.environment import MASTER_PORT
from trainhub_launch.states import Phase

# Phase of a part -> activity of its node, for sentences.
BEFORE_READY = {
    "": "starting to prepare",
    Phase.ACCEPTED: "fetching the source",
    Phase.PREPARING: "preparing its environment",
}
# The minor version of Python decides about pickles and extensions, the major one of Open MPI about its wire
# protocol; frameworks talk to each other in ways that change with any release.
# Software that must be the same on all nodes -> how many parts of its version must match (0: all parts).
SIGNIFICANT_PARTS = {"python": 2, "openmpi": 1, "torch": 0, "tensorflow": 0, "horovod": 0, "deepspeed": 0}


def start_if_ready(run: Run, part: AttemptNode, *, is_first: bool) -> bool:
    """Starts the attempt if all of its nodes are ready. Called when `part` has reported that it is ready.

    The caller has locked the run's row. `is_first`: the node reports this phase for the first time.
    Returns True if the attempt has ended here because its nodes do not match.
    """
    attempt = part.attempt
    if (
        attempt.plan is not None
        or attempt.failing
        or attempt.ended_at is not None
        or run.attempt != attempt.number
    ):
        return False
    if run.state != RunState.PREPARING:
        return False
    rows = list(AttemptNode.objects.filter(attempt=attempt).select_related("node").order_by("node_rank"))
    behind = [row for row in rows if row.phase != Phase.READY]
    if not behind:
        return not _start(run, attempt, part, rows)
    # Once per node, not with each repetition of its report.
    if is_first and all(row.phase in BEFORE_READY for row in behind):
        lifecycle.record_event(
            run.pk, _still_waiting(part, behind), actor=f"node {part.node.name}", attempt=attempt.number
        )
    return False


def activity(part: AttemptNode) -> str:
    """Returns what the node of a part that is not ready is doing, to complete "it is still …"."""
    return BEFORE_READY[part.phase]


def version_mismatch(versions_by_node: Mapping[str, Mapping[str, str]]) -> str:
    """Returns the first difference between the nodes' software as a clause, or "" if there is none.

    Software that a node does not have is ignored: the run may not need it.
    """
    for name, places in SIGNIFICANT_PARTS.items():
        versions = {
            node: installed[name] for node, installed in versions_by_node.items() if installed.get(name)
        }
        kinds = {node: _significant(version, places) for node, version in versions.items()}
        first = next(iter(kinds), "")
        # The order of the nodes is that of their ranks, so the sentence is the same at every start.
        other = next((node for node, kind in kinds.items() if kind != kinds[first]), None)
        if other is not None:
            return f"{name} is {versions[first][:60]} on {first} and {versions[other][:60]} on {other}"
    return ""


def _significant(version: str, places: int) -> tuple[str, ...]:
    return tuple(version.split(".")[:places]) if places else (version,)


def _start(run: Run, attempt: Attempt, last: AttemptNode, rows: Sequence[AttemptNode]) -> bool:
    """Makes the final plan and wakes the nodes. Returns False if the attempt has ended instead."""
    different = version_mismatch({row.node.name: row.fact.get("versions", {}) for row in rows})
    if different:
        end_attempt(run.pk, attempt.number, Reason.MISMATCH, {"detail": different})
        return False
    try:
        final = final_plan.finalize_plan(run, attempt, {row.node.name: row.ports for row in rows})
    except SpecError as error:
        end_attempt(
            run.pk, attempt.number, Reason.LAUNCH_FAILED, {"node": rows[0].node.name, "detail": error.message}
        )
        return False
    lifecycle.record_event(run.pk, _all_ready(rows, final), attempt=attempt.number)
    for row in rows:
        # The node that has just reported learns it from the answer to its report.
        if row.pk != last.pk:
            wake_soon(row.node, run.pk, attempt.number)
    return True


def _still_waiting(ready: AttemptNode, behind: Sequence[AttemptNode]) -> str:
    clauses = []
    for row in behind:
        clause = f"is {activity(row)}" if row.claimed_at else "has not claimed its part yet"
        clauses.append(f"{row.node.name}, which {clause}")
    return f"{ready.node.name} is ready; waiting for {', and for '.join(clauses)}."


def _all_ready(rows: Sequence[AttemptNode], final: LaunchPlan) -> str:
    port = final.ports.get("MASTER_PORT")
    is_moved = port is not None and port != MASTER_PORT
    moved_port = (
        f" MASTER_PORT is {port}: {MASTER_PORT} is in use on {rows[0].node.name}." if is_moved else ""
    )
    return f"All {len(rows)} nodes are ready; their ranks start.{moved_port}"
