"""A node's part of an attempt, as the answers to its reports need it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.db.models import QuerySet

from jobs.models import AttemptNode, Member
from jobs.node_api.assignment import Assignment
from jobs.states import RunState
from trainhub_launch.log_names import DRIVER_LOG
from trainhub_launch.order import OrderKind
from trainhub_launch.report import StopOrder
from trainhub_launch.states import Phase, StopReason
from workspaces.database.compiled_queries import compiled

_OF_A_NODE = re.compile(r"node_\d+/")


@dataclass(frozen=True, kw_only=True)
class RunAssignment(Assignment):
    """One unsettled part that a node has, or should have, of an attempt."""

    kind = OrderKind.RUN
    part_id: int
    run_state: RunState
    run_attempt: int
    failing: bool
    node_rank: int
    grace_s: int
    workspace_id: int
    own_logs: frozenset[str]
    planned: bool
    served: bool
    preempted: bool = False

    @property
    def over(self) -> bool:
        """Returns whether the attempt needs nothing more from this part, whatever the node still runs of
        it."""
        return self.ended or self.run_attempt != self.attempt

    @property
    def to_start(self) -> bool:
        """Returns whether the node must claim: its part first, and the final order once all nodes are
        ready."""
        if self.over or self.failing or self.served or self.preempted:
            return False
        if self.claimed_at is None:
            return self.run_state in (RunState.PROVISIONING, RunState.PREPARING)
        return self._may_start

    @property
    def needs_daemon(self) -> bool:
        return bool(self.daemon) and not (self.over or self.failing or self.served) and self._may_start

    @property
    def _may_start(self) -> bool:
        return (
            self.phase == Phase.READY
            and self.planned
            and self.run_state in (RunState.PREPARING, RunState.RUNNING)
        )

    def stop(self) -> StopOrder | None:
        if self.phase == Phase.DONE:
            return None
        why = None
        if self.run_state is RunState.CANCEL_REQUESTED and not self.over:
            why = StopReason.CANCELED
        elif self.preempted and not self.over:
            # A node of an earlier version stops the run, too, but does not write the file that announces it.
            why = StopReason.PREEMPTED
        elif self.over:
            why = StopReason.ORPHAN
        elif self.failing:
            why = StopReason.GANG
        elif self.served:
            why = StopReason.SERVED
        return StopOrder(self.run, self.attempt, self.grace_s, why) if why else None

    def stored_name(self, name: str) -> str | None:
        """Returns the name under which the hub stores a log of this node, or None if the name belongs to a
        rank of another node.

        Names of the head node stay as they are, except those below `node_<rank>/`, which belong to the other
        nodes. Other nodes have a build log and a preparation log, too."""
        if name in self.own_logs:
            return name
        if name.startswith(DRIVER_LOG) or (self.node_rank == 0 and _OF_A_NODE.match(name)):
            return None
        return name if self.node_rank == 0 else f"node_{self.node_rank}/{name}"


def run_assignment(part: AttemptNode, previous: Assignment | None) -> RunAssignment:
    """Returns the assignment of this part. `part`: with the annotations `planned`, whether its final plan is
    known, and `grace_s`, of its spec; `previous`: as it was read before, whose log names still hold."""
    attempt, run = part.attempt, part.attempt.run
    planned: bool = part.planned  # type: ignore[attr-defined]  # annotated
    before = previous if isinstance(previous, RunAssignment) else None
    return RunAssignment(
        part_id=part.pk,
        run=run.pk,
        attempt=attempt.number,
        run_state=RunState(run.state),
        run_attempt=run.attempt,
        ended=attempt.ended_at is not None,
        failing=attempt.failing,
        claimed_at=part.claimed_at,
        node_rank=part.node_rank,
        phase=part.phase,
        grace_s=int(part.grace_s),  # type: ignore[attr-defined]  # annotated
        workspace_id=run.workspace_id,
        own_logs=before.own_logs if before and before.planned == planned else _own_logs(part),
        planned=planned,
        served=attempt.served,
        daemon=tuple(part.daemon),
        preempted=bool(attempt.preempted_by),
        checkpoints=tuple((number, name) for number, name in attempt.pending_checkpoints),
    )


def _own_logs(part: AttemptNode) -> frozenset[str]:
    return frozenset(name for (name,) in _log_names(part.attempt_id, part.node_id))


@compiled
def _log_names(attempt_id: int, node_id: int) -> QuerySet[Member, tuple[str]]:
    return Member.objects.filter(attempt_id=attempt_id, node_id=node_id).values_list("log_name")
