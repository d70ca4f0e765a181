"""The orders to nodes about datastores. Part of `jobs.models`, which every other module imports."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from clusters.models import Node
from clusters.task_messages import send_task_soon
from datastores.models import DatasetVersion, Datastore, DatastoreTest
from jobs.data_orders.states import DataWork
from jobs.node_orders.states import OrderState
from jobs.node_orders.work_order import WorkOrder, id_pattern, new_order_id
from workspaces.task_names import TaskName

# No version of a UUID.
DATA_DIGIT = "9"
DATA_ORDER_ID = id_pattern(DATA_DIGIT)


def new_data_order_id() -> str:
    return new_order_id(DATA_DIGIT)


def is_data_order_id(identifier: str) -> bool:
    """Returns whether this is the id of an order about a datastore."""
    return DATA_ORDER_ID.match(identifier) is not None


class DataOrder(WorkOrder):
    """An order to a node to read a datastore. A node is offered one of each work at a time.

    `test`: the test that it is a part of; `version`: the version of a dataset whose files it lists; one of
    the two. `result`: what the node has found; of a list the SHA-256 of the uploaded file. `order_number`:
    how often listing the version has been ordered, because nodes were lost with it."""

    AGAIN: ClassVar[str] = "Try it again"

    id = models.CharField(primary_key=True, max_length=32, default=new_data_order_id, editable=False)
    node = models.ForeignKey(Node, models.CASCADE, related_name="data_orders")
    datastore = models.ForeignKey(Datastore, models.CASCADE, related_name="orders")
    work = models.CharField(max_length=8, choices=[(work.value, work.value) for work in DataWork])
    test = models.ForeignKey(DatastoreTest, models.CASCADE, null=True, related_name="orders")
    version = models.ForeignKey(DatasetVersion, models.CASCADE, null=True, related_name="orders")
    state = models.CharField(
        max_length=16,
        default=OrderState.QUEUED,
        choices=[(state.value, state.value) for state in OrderState],
    )
    result = models.JSONField(default=dict)
    order_number = models.PositiveSmallIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node", "work"],
                condition=models.Q(settled_at=None, offered_at__isnull=False),
                name="one_data_order_per_node",
            ),
        ]
        ordering = ["-created_at"]
        indexes = [
            # Read with each report of a busy node, and in every check for lost nodes.
            models.Index(fields=["node"], condition=models.Q(settled_at=None), name="data_order_unsettled"),
        ]

    @property
    def path(self) -> str:
        """What is read: of a folder the absolute path, otherwise the path in the store."""
        if self.version is not None:
            return self.version.full_path
        return self.datastore.path_of(self.test.path if self.test is not None else "")

    def __str__(self) -> str:
        return f"{self.work} {self.datastore} on {self.node.name}"

    @property
    def lane(self) -> dict[str, int | str]:
        return {"node_id": self.node_id, "work": self.work}

    def send_offer(self) -> None:
        send_task_soon(TaskName.OFFER_DATA_ORDERS, self.node_id)

    def note_change(self) -> None:
        if self.is_finished and self.version_id is not None:
            send_task_soon(TaskName.ADVANCE_LISTING, self.version_id)
