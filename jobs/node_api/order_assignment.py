"""An order that is no run and is offered to a node, as the answers to its reports need it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from jobs.node_api.assignment import Assignment
from jobs.node_orders.work_order import ORDER_ATTEMPT
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG
from trainhub_launch.order import OrderKind
from trainhub_launch.report import StopOrder
from trainhub_launch.states import Phase, StopReason

GRACE_S = 10
# What an assignment is made of, besides its kind.
COLUMNS = ("node_id", "pk", "claimed_at", "phase", "ended_at", "cancel_requested_at")


@dataclass(frozen=True, kw_only=True)
class OrderAssignment(Assignment):
    """An unsettled order. `canceled`: somebody has canceled it."""

    logs: ClassVar[tuple[str, ...]] = (PREPARATION_LOG,)
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
        return name if name in self.logs else None


class BuildAssignment(OrderAssignment):
    kind = OrderKind.BUILD
    logs = (ENVIRONMENT_LOG, PREPARATION_LOG)


class ProbeAssignment(OrderAssignment):
    kind = OrderKind.PROBE


def order_assignment(  # noqa: PLR0917 - a row of COLUMNS
    of_kind: type[OrderAssignment],
    order_id: str,
    claimed_at: datetime | None,
    phase: str,
    ended_at: datetime | None,
    cancel_requested_at: datetime | None,
) -> OrderAssignment:
    return of_kind(
        run=order_id,
        attempt=ORDER_ATTEMPT,
        claimed_at=claimed_at,
        phase=phase,
        ended=ended_at is not None,
        canceled=cancel_requested_at is not None,
    )
