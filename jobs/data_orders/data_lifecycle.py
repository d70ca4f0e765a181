"""Orders to nodes about datastores: making, offering and ending them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from clusters.models import Node
from datastores.models import DatasetVersion, DatastoreTest
from jobs.data_orders.states import DataWork
from jobs.models import DataOrder
from jobs.node_orders import order_lifecycle
from jobs.node_orders.states import OrderState
from trainhub_launch.data.store_test import TEST_TIMEOUT_S
from workspaces.database.compiled_queries import compiled

# A node that lists for longer is given up; millions of files on a slow file server take some minutes.
LIST_TIMEOUT_S = 2 * 3600.0
TIMEOUTS_S = {DataWork.TEST: TEST_TIMEOUT_S, DataWork.LIST: LIST_TIMEOUT_S}


def order_test(test: DatastoreTest, node: Node) -> DataOrder:
    order = DataOrder.objects.create(
        node=node, datastore=test.datastore, work=DataWork.TEST, test=test, created_by=test.created_by
    )
    order.send_offer()
    return order


def order_list(version: DatasetVersion, node: Node, number: int) -> DataOrder:
    """Orders the node to list the files of the version. `number`: 1, or more if nodes were lost with it."""
    order = DataOrder.objects.create(
        node=node,
        datastore=version.dataset.datastore,
        work=DataWork.LIST,
        version=version,
        created_by=version.created_by,
        order_number=number,
    )
    order.send_offer()
    return order


def offer_next(node_id: int) -> None:
    """Offers the node its oldest waiting order of each work, unless it has one already."""
    for work in DataWork:
        order_lifecycle.offer_next(DataOrder.objects.filter(node_id=node_id, work=work))


def end_overdue(now: datetime) -> None:
    """Ends orders that take too long, whatever their node still does."""
    for work, seconds in TIMEOUTS_S.items():
        for order in _unfinished(work.value, now - timedelta(seconds=seconds)):
            what = "answer" if order.claimed_at is None else "end"
            reason = (
                f"{order.node.name} did not {what} within {seconds:,.0f} s: see whether its agent runs, and "
            )
            reason += "whether its network and its file servers answer."
            order_lifecycle.finish(order, OrderState.FAILED, reason, now, is_lost=True)


@compiled
def _unfinished(work: str, before: datetime) -> QuerySet[DataOrder]:
    return DataOrder.objects.filter(work=work, ended_at=None, created_at__lt=before)
