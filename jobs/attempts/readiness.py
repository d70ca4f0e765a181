"""The start in two phases: when every node of a run is ready, the plan is made final and all are told to
start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs import lifecycle
from jobs.attempts import final_plan
from jobs.attempts.attempt_end import end_attempt
from jobs.models import Attempt, AttemptNode, Run
from jobs.states import Reason, RunState
from jobs.task_messages import wake_soon
from trainhub_launch.environment import MASTER_PORT
from trainhub_launch.errors import SpecError
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.report import READY

BEFORE_READY = {
    "": "starting to prepare",
    "accepted": "fetching the source",
    "preparing": "preparing its environment",
}
"""Phase of a part -> what its node is doing."""
SIGNIFICANT_PARTS = {"python": 2, "openmpi": 1, "torch": 0, "tensorflow": 0, "horovod": 0, "deepspeed": 0}
"""Software that all nodes must have alike -> how many parts of its version count (0: the whole of it)."""


def start_if_ready(run: Run, part: AttemptNode, *, is_first: bool) -> bool:
    """Called when `part` has told that it is ready, in the transaction that holds the run. `news`: for the
    first time.

    True when the attempt has ended here.
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
    behind = [row for row in rows if row.phase != READY]
    if not behind:
        return not _start(run, attempt, part, rows)
    if is_first and all(row.phase in BEFORE_READY for row in behind):
        lifecycle.note(
            run.pk, _still_waiting(part, behind), actor=f"node {part.node.name}", attempt=attempt.number
        )
    return False


def activity(part: AttemptNode) -> str:
    """What the node of a part that is not ready is doing, for "it is still …"."""
    return BEFORE_READY[part.phase]


def version_mismatch(versions_by_node: Mapping[str, Mapping[str, str]]) -> str:
    """Node -> its versions, in the order of the nodes: what differs, as a clause; empty where nothing does.

    What a node does not have at all differs from nothing: the run may not need it.
    """
    for name, places in SIGNIFICANT_PARTS.items():
        versions = {node: installed[name] for node, installed in versions_by_node.items() if installed.get(name)}
        kinds = {node: _significant(version, places) for node, version in versions.items()}
        first = next(iter(kinds), "")
        other = next((node for node, kind in kinds.items() if kind != kinds[first]), None)
        if other is not None:
            return f"{name} is {versions[first][:60]} on {first} and {versions[other][:60]} on {other}"
    return ""


def _significant(version: str, places: int) -> tuple[str, ...]:
    return tuple(version.split(".")[:places]) if places else (version,)


def _start(run: Run, attempt: Attempt, last: AttemptNode, rows: Sequence[AttemptNode]) -> bool:
    """Whether they may start; else the attempt has ended."""
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
    lifecycle.note(run.pk, _all_ready(rows, final), attempt=attempt.number)
    for row in rows:
        # The one that has just told it reads the same in the answer.
        if row.pk != last.pk:
            wake_soon(row.node, run.pk, attempt.number)
    return True


def _still_waiting(ready: AttemptNode, behind: Sequence[AttemptNode]) -> str:
    activities = ", and for ".join(
        f"{row.node.name}, which {f'is {activity(row)}' if row.claimed_at else 'has not asked for its part yet'}"
        for row in behind
    )
    return f"{ready.node.name} is ready; waiting for {activities}."


def _all_ready(rows: Sequence[AttemptNode], final: LaunchPlan) -> str:
    port = final.ports.get("MASTER_PORT")
    is_moved = port is not None and port != MASTER_PORT
    moved_port = f" MASTER_PORT is {port}: {MASTER_PORT} is in use on {rows[0].node.name}." if is_moved else ""
    return f"All {len(rows)} nodes are ready; their ranks start.{moved_port}"
