"""What the hub does with the reports of a node about builds."""

from __future__ import annotations

from datetime import datetime

from clusters.models import Node
from jobs.attempts.environment_record import record_environment
from jobs.builds.models import EnvironmentBuild
from jobs.builds.states import BuildPurpose, BuildState
from jobs.node_api.order_reports import OrderReports
from trainhub_launch.report import AttemptFact
from trainhub_launch.states import Phase, StopReason


class BuildReports(OrderReports):
    orders = EnvironmentBuild

    def note_done(self, node: Node, order: EnvironmentBuild, fact: AttemptFact, now: datetime) -> None:
        if order.purpose == BuildPurpose.INSTALL and Phase.RUNNING in fact.phase_at:
            record_environment(node, order.name, order.version, order.own_version_id, fact, now)

    def outcome(self, order: EnvironmentBuild, fact: AttemptFact) -> tuple[BuildState, str]:
        # The environment was complete before anything else happened.
        if Phase.RUNNING in fact.phase_at:
            return BuildState.BUILT, ""
        if fact.stopping == StopReason.CANCELED:
            return BuildState.CANCELED, order.reason
        if fact.error:
            return BuildState.FAILED, fact.error
        return BuildState.FAILED, f"{order.node.name} ended it before it was complete. {order.AGAIN}."
