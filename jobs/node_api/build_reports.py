"""What the hub does with the reports of a node about builds."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from clusters.models import Node
from jobs.attempts import attempt_report_json
from jobs.attempts.environment_record import record_environment
from jobs.attempts.run_transitions import to_datetime
from jobs.builds import build_lifecycle
from jobs.builds.models import EnvironmentBuild
from jobs.builds.states import BuildPurpose, BuildState
from jobs.node_api.build_assignment import BuildAssignment
from trainhub_launch.report import AttemptFact
from trainhub_launch.states import PHASES, ErrorKind, Phase, StopReason


class BuildReports:
    """See OrderHandler."""

    def apply(self, node: Node, assignment: BuildAssignment, fact: AttemptFact, now: datetime) -> bool:
        fact = attempt_report_json.normalize(fact, node.clock_offset_s)
        with transaction.atomic():
            builds = EnvironmentBuild.objects.select_for_update(of=("self",)).select_related("node")
            build = builds.filter(pk=assignment.run).first()
            if build is None:
                return True  # its environment was deleted a moment ago
            # Reports can overtake each other on the way.
            if build.phase and PHASES.index(fact.phase) < PHASES.index(build.phase):
                return True
            started_at = to_datetime(fact.phase_at.get(Phase.PREPARING))
            EnvironmentBuild.objects.filter(pk=build.pk).update(phase=fact.phase, started_at=started_at)
            build.phase, build.started_at = fact.phase, started_at
            # What the node has made it has, also if the build was given up meanwhile.
            is_installed = build.purpose == BuildPurpose.INSTALL
            if is_installed and Phase.RUNNING in fact.phase_at and fact.phase is Phase.DONE:
                record_environment(node, build.name, build.version, build.own_version_id, fact, now)
            if fact.phase is Phase.DONE:
                state, reason = _outcome(build, fact)
                ended_at = to_datetime(fact.phase_at.get(Phase.RUNNING)) or now
                # The node was restarted, or its process was killed.
                is_lost = state is BuildState.FAILED and fact.error_kind == ErrorKind.INTERNAL
                build_lifecycle.finish_build(build, state, reason, ended_at, is_lost=is_lost)
        return True

    def close(self, node: Node, assignment: BuildAssignment, now: datetime) -> None:
        build_lifecycle.settle_build(EnvironmentBuild(pk=assignment.run, node=node), now)

    def end_orphan(self, node: Node, assignment: BuildAssignment, now: datetime) -> None:
        reason = f"{node.name} has lost the build, with its disk or its processes. Order it again."
        for build in EnvironmentBuild.objects.select_related("node").filter(pk=assignment.run):
            build_lifecycle.finish_build(build, BuildState.FAILED, reason, now, is_lost=True)

    def record_return(self, node: Node, assignment: BuildAssignment, silence_s: float) -> None:
        """A build has no list of events."""


def _outcome(build: EnvironmentBuild, fact: AttemptFact) -> tuple[BuildState, str]:
    """Returns how a build ended that its node has reported as done."""
    # The environment was complete before anything else happened.
    if Phase.RUNNING in fact.phase_at:
        return BuildState.BUILT, ""
    if fact.stopping == StopReason.CANCELED:
        return BuildState.CANCELED, build.reason
    if fact.error:
        return BuildState.FAILED, fact.error
    return BuildState.FAILED, f"{build.node.name} ended it before it was complete. Order it again."
