"""The newest test of a datastore as pages and the API show it: a row for the hub and for each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from datastores.models import Datastore, DatastoreTest
from datastores.testing.states import UNFINISHED, ProbeState
from jobs.models import DataOrder
from jobs.node_orders.states import OrderState
from trainhub_launch.data.store_test import TEST_TIMEOUT_S

# For the hub's own worker, which begins a little later.
HUB_TIMEOUT = timedelta(seconds=TEST_TIMEOUT_S + 30)
HUB_SILENT = (
    f"The hub's worker has not answered within {HUB_TIMEOUT.total_seconds():.0f} s: ask an operator whether "
    "it runs, and test again."
)
_STATES = {
    OrderState.QUEUED: ProbeState.WAITING,
    OrderState.WORKING: ProbeState.TESTING,
    OrderState.DONE: ProbeState.OK,
    OrderState.FAILED: ProbeState.FAILED,
    OrderState.CANCELED: ProbeState.CANCELED,
}


@dataclass(frozen=True)
class ProbeRow:
    """What one machine says. `node`: None for the hub; `reason`: a sentence why it failed or has nothing to
    test; `note`: a sentence about what it has read; `order`: the id of its order, "" for the hub."""

    node: str | None
    state: ProbeState
    reason: str = ""
    note: str = ""
    files: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    order: str = ""

    @property
    def bytes_per_second(self) -> float | None:
        return self.bytes / self.seconds if self.bytes and self.seconds else None


def newest_test(datastore: Datastore) -> DatastoreTest | None:
    return DatastoreTest.objects.select_related("datastore", "created_by").filter(datastore=datastore).first()


def rows_of(test: DatastoreTest) -> list[ProbeRow]:
    """Returns the row of the hub, and those of the nodes by name."""
    orders = DataOrder.objects.filter(test=test).select_related("node").order_by("node__name")
    return [_hub_row(test), *(_node_row(order) for order in orders)]


def is_in_progress(test: DatastoreTest) -> bool:
    return any(row.state in UNFINISHED for row in rows_of(test))


def _hub_row(test: DatastoreTest) -> ProbeRow:
    state, reason = ProbeState(test.hub_state), test.hub_reason
    if state in UNFINISHED and timezone.now() - test.created_at > HUB_TIMEOUT:
        state, reason = ProbeState.FAILED, HUB_SILENT
    return ProbeRow(None, state, reason, **_facts(test.hub_result))


def _node_row(order: DataOrder) -> ProbeRow:
    state = _STATES[OrderState(order.state)]
    reason = order.reason if state not in UNFINISHED else ""
    return ProbeRow(order.node.name, state, reason, order=order.pk, **_facts(order.result))


def _facts(result: Mapping[str, object]) -> dict[str, Any]:
    return {name: result[name] for name in ("note", "files", "bytes", "seconds") if name in result}
