"""Orders to nodes about datastores, played by hand."""

from __future__ import annotations

import json
from typing import Any

from asgiref.sync import async_to_sync

from clusters.models import Node
from jobs.data_orders import data_lifecycle
from jobs.models import DataOrder
from tests.jobs.builders import Played, node
from tests.jobs.raw import opened
from trainhub_launch.log_names import PREPARATION_LOG
from trainhub_launch.machine import DATASETS, DOWNLOADS, INPUTS, PROBE
from trainhub_launch.order import NodeOrder

ALL = (INPUTS, DOWNLOADS, DATASETS, PROBE)


def prober(name: str, *capabilities: str) -> Played:
    """A node that takes orders about datastores, or has only these capabilities."""
    machine = node(name)
    Node.objects.filter(pk=machine.pk).update(capabilities=" ".join(capabilities or ALL))
    machine.refresh_from_db()
    return Played(machine)


def taken_up(played: Played) -> tuple[DataOrder, NodeOrder]:
    """The order of the node that waited, and what it says."""
    data_lifecycle.offer_next(played.node.pk)
    order = DataOrder.objects.get(node=played.node, ended_at=None)
    node_order = played.claim(order)
    played.tell(order, "preparing")
    order.refresh_from_db()
    return order, node_order


def sent(order: NodeOrder, method: str, path: str, body: bytes, ticket: str = "") -> Any:
    address = order.probe["upload"].partition("//")[2].partition("/")[2]

    @async_to_sync
    async def ask() -> Any:
        async with opened() as client:
            headers = {"Authorization": f"Bearer {ticket or order.probe['ticket']}"}
            return await client.request(method, f"/{address}/{path}", content=body, headers=headers)

    return ask()


def report_result(order: NodeOrder, **result: Any) -> Any:
    return sent(order, "POST", "result/", json.dumps(result).encode())


def fail(played: Played, order: DataOrder, sentence: str) -> None:
    """Its node reports why there is no result."""
    played.log(order, PREPARATION_LOG, 0, b"failed\n")
    played.tell(order, "done", error=sentence, error_kind="data", logs={PREPARATION_LOG: 7})
