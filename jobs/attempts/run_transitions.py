"""Advances a run to the state that its nodes' reports imply, and stops the other nodes once one rank
decides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db.models import QuerySet

from clusters.backends.contract import AttemptKey
from clusters.kinds import backend_of
from clusters.models import Node
from jobs import lifecycle, outcomes
from jobs.attempts import attempt_report_json
from jobs.attempts.attempt_end import end_attempt
from jobs.models import Attempt, AttemptNode, Member, Run
from jobs.states import Reason, RunState
from jobs.task_messages import wake_soon
from trainhub_launch.states import Phase, StopReason
from workspaces.database.compiled_queries import compiled

_STATE_OF_PHASE = {Phase.RUNNING: RunState.RUNNING, Phase.UPLOADING: RunState.FINALIZING}


def apply_reports(run: Run, part: AttemptNode, now: datetime) -> None:
    """Advances the run state by state, each step at the time that the nodes reported for it. `run`: as the
    caller has locked it; `part`: what has just been reported."""
    attempt, node = part.attempt, part.node
    if attempt.ended_at is not None or run.attempt != attempt.number:
        return
    rows = _all_parts(part)
    parts = load_parts(attempt, rows)
    canceled_by, timeout_s = _canceled_by(run), run.spec["limits"]["timeout_s"]
    preempted_by = attempt.preempted_by
    verdict = outcomes.derive(parts, canceled_by=canceled_by, timeout_s=timeout_s, preempted_by=preempted_by)
    if verdict.failing and not attempt.failing:
        _end_others(run, attempt, rows, node, "failing")
    if verdict.served and not attempt.served:
        _end_others(run, attempt, rows, node, "served")
    if attempt.failing or canceled_by is not None or preempted_by:
        # Unclaimed parts will not be claimed any more, so the verdict must not wait for them.
        parts = [part for part, row in zip(parts, rows, strict=True) if row.claimed_at is not None]
        verdict = outcomes.derive(
            parts, canceled_by=canceled_by, timeout_s=timeout_s, preempted_by=preempted_by
        )
    actor, since = f"node {node.name}", run.state_since
    # In the order of the phases: a run that was faster than its reports still passes through every state.
    for phase, state in _STATE_OF_PHASE.items():
        if not _reached(parts, phase, verdict):
            continue
        times = _times(parts, phase) or _times(parts, Phase.DONE) or [now.timestamp()]
        # Running begins with the first node, Finalizing with the last.
        at = _clamped(min(times) if phase is Phase.RUNNING else max(times), since, now)
        if lifecycle.advance(run.pk, state, actor=actor, attempt=attempt.number, at=at, locked=run):
            since = at
    if verdict.reason and not _may_be_explained(verdict, parts, node, (run.pk, attempt.number), now):
        at = _clamped(max(_times(parts, Phase.DONE), default=now.timestamp()), since, now)
        end_attempt(run.pk, attempt.number, verdict.reason, verdict.facts, actor=actor, at=at, locked=run)


def _all_parts(part: AttemptNode) -> list[AttemptNode]:
    """Returns the parts of the attempt in the order of their ranks; the only one need not be read again."""
    if len(part.attempt.placement) == 1:
        return [part]
    parts = AttemptNode.objects.filter(attempt_id=part.attempt_id).select_related("node")
    return list(parts.order_by("node_rank"))


def _may_be_explained(
    verdict: outcomes.RunVerdict,
    parts: Sequence[outcomes.NodePart],
    node: Node,
    key: AttemptKey,
    now: datetime,
) -> bool:
    """Returns whether the end is not to be believed yet: a scheduler outside of the hub may be its cause."""
    is_from_outside = any(
        part.fact is not None and part.fact.stopping == StopReason.OUTSIDE for part in parts
    )
    if verdict.reason.final_state is not RunState.FAILED and not is_from_outside:
        return False
    scheduler = backend_of(node.cluster).scheduler
    return scheduler is not None and scheduler.may_explain(key, now)


def load_parts(attempt: Attempt, rows: Sequence[AttemptNode]) -> list[outcomes.NodePart]:
    """Returns the stored parts as the values that `outcomes` works on."""
    decides: dict[int, dict[int, bool]] = {}
    for node_id, rank, decisive in _deciding_ranks(attempt.pk):
        decides.setdefault(node_id, {})[rank] = decisive
    return [attempt_report_json.load_part(row, decides.get(row.node_id, {})) for row in rows]


@compiled
def _deciding_ranks(attempt_id: int) -> QuerySet[Member, tuple[int, int, bool]]:
    return Member.objects.filter(attempt_id=attempt_id).values_list("node_id", "rank", "decides")


def _reached(parts: Sequence[outcomes.NodePart], phase: Phase, verdict: outcomes.RunVerdict) -> bool:
    if verdict.reason is Reason.COMPLETED:
        return True
    if phase is Phase.UPLOADING and verdict.state is RunState.FINALIZING:
        return True
    return bool(_times(parts, phase)) and (phase is Phase.RUNNING or bool(verdict.reason))


def _times(parts: Sequence[outcomes.NodePart], phase: Phase) -> list[float]:
    return [part.fact.phase_at[phase] for part in parts if part.fact and phase in part.fact.phase_at]


def _end_others(run: Run, attempt: Attempt, rows: Sequence[AttemptNode], reporter: Node, flag: str) -> None:
    """Marks the attempt as decided by one rank (`flag`: a field of Attempt) and wakes its other nodes.

    A node learns that it has to stop from the answer to its next report; `reporter` learns it from the answer
    to this one."""
    setattr(attempt, flag, True)
    attempt.save(update_fields=[flag])
    for row in rows:
        if row.node_id != reporter.pk and row.claimed_at is not None and row.phase != Phase.DONE:
            wake_soon(row.node, run.pk, attempt.number)


def _canceled_by(run: Run) -> str | None:
    return str(run.facts.get("who", "")) if run.state == RunState.CANCEL_REQUESTED else None


def _clamped(seconds: float, since: datetime, now: datetime) -> datetime:
    """Returns the time, limited to `since` … `now`: a node's clock may be wrong."""
    return min(max(to_datetime(seconds) or now, since), now)


def to_datetime(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
