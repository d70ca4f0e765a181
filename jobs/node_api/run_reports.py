"""What the hub does with the reports of a node about its parts of attempts."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from clusters.models import Node
from jobs import causes, lifecycle
from jobs.attempts import apply_attempt_report
from jobs.attempts.attempt_end import end_attempt
from jobs.logs import log_store
from jobs.models import AttemptNode
from jobs.node_api.run_assignment import RunAssignment
from jobs.states import Reason
from trainhub_launch.report import AttemptFact
from workspaces.database.compiled_queries import compiled


@compiled
def _parts(part_id: int) -> QuerySet[AttemptNode]:
    return AttemptNode.objects.filter(pk=part_id).select_related("node").only("attempt_id", "node__name")


class RunReports:
    """See OrderHandler."""

    def apply(self, node: Node, assignment: RunAssignment, fact: AttemptFact, now: datetime) -> bool:
        return apply_attempt_report.apply_report(node, assignment.part_id, fact, now)

    def close(self, node: Node, assignment: RunAssignment, now: datetime) -> None:  # noqa: ARG002
        (part,) = _parts(assignment.part_id)
        lifecycle.settle(part, assignment.run, assignment.attempt, now)
        causes.store_soon(assignment.run, assignment.attempt)
        if not lifecycle.unsettled_parts(part.attempt_id):
            log_store.close(assignment.run, assignment.attempt)

    def end_orphan(self, node: Node, assignment: RunAssignment, now: datetime) -> None:  # noqa: ARG002
        facts = {"node": node.name}
        end_attempt(assignment.run, assignment.attempt, Reason.ORPHANED, facts, actor=f"node {node.name}")

    def record_return(self, node: Node, assignment: RunAssignment, silence_s: float) -> None:
        message = f"Node {node.name} reports again, after {silence_s:.0f} s of silence."
        lifecycle.record_event(assignment.run, message, actor=f"node {node.name}", attempt=assignment.attempt)
