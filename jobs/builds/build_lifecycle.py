"""Offers builds to nodes, one at a time to each."""

from __future__ import annotations

from clusters.models import Node
from clusters.task_messages import send_task_soon
from jobs.builds.models import EnvironmentBuild
from jobs.node_orders import order_lifecycle
from workspaces.task_names import TaskName


def offer_soon(node: Node) -> None:
    """Has the worker offer the node its next build, once the transaction has committed."""
    send_task_soon(TaskName.OFFER_BUILD, node.pk)


def offer_next(node_id: int) -> None:
    """Offers the node its oldest waiting build and wakes it, unless it has one already."""
    order_lifecycle.offer_next(EnvironmentBuild.objects.filter(node_id=node_id))
