"""A build that is offered to a node, as the answers to its reports need it."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.builds.models import BUILD_ATTEMPT, EnvironmentBuild
from jobs.node_api.assignment import Assignment
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG
from trainhub_launch.order import OrderKind
from trainhub_launch.report import StopOrder
from trainhub_launch.states import Phase, StopReason

GRACE_S = 10
LOGS = (ENVIRONMENT_LOG, PREPARATION_LOG)


@dataclass(frozen=True, kw_only=True)
class BuildAssignment(Assignment):
    """An unsettled build. `canceled`: somebody has canceled it."""

    kind = OrderKind.BUILD
    canceled: bool

    @property
    def over(self) -> bool:
        return self.ended

    @property
    def to_start(self) -> bool:
        return self.claimed_at is None and not (self.ended or self.canceled)

    @property
    def needs_daemon(self) -> bool:
        return False

    def stop(self) -> StopOrder | None:
        if self.phase == Phase.DONE or not (self.ended or self.canceled):
            return None
        why = StopReason.ORPHAN if self.ended else StopReason.CANCELED
        return StopOrder(self.run, self.attempt, GRACE_S, why)

    def stored_name(self, name: str) -> str | None:
        return name if name in LOGS else None


def build_assignment(build: EnvironmentBuild) -> BuildAssignment:
    return BuildAssignment(
        run=build.pk,
        attempt=BUILD_ATTEMPT,
        claimed_at=build.claimed_at,
        phase=build.phase,
        ended=build.is_finished,
        canceled=build.cancel_requested_at is not None,
    )
