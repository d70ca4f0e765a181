"""Begins and cancels tests of datastores for people."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from clusters.models import Node
from clusters.task_messages import send_task_soon
from datastores.changes import require_contributor
from datastores.models import Datastore, DatastoreTest
from datastores.places import check_path
from datastores.states import DatastoreKind
from datastores.testing.hub_test import hub_refusal
from datastores.testing.states import ProbeState
from jobs.data_orders import data_lifecycle
from jobs.data_orders.node_choices import reading_refusal, usable_nodes
from jobs.datastore_tests.rows import is_in_progress
from jobs.models import DataOrder
from jobs.node_orders import order_lifecycle
from jobs.node_orders.states import OrderState
from jobs.node_orders.work_order import ORDER_ATTEMPT
from jobs.task_messages import wake_soon
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal
from workspaces.task_names import TaskName

# Nodes of one test, which all read at once.
MAX_NODES = 16


def begin_test(
    principal: Principal, datastore: Datastore, names: Sequence[str] | None = None, path: str = ""
) -> DatastoreTest:
    """Tests the datastore from the hub and from the nodes, by default from all that the workspace may use, up
    to MAX_NODES. Returns the test that is in progress, if there is one. Raises SpecError with the field
    `nodes`, `path` or `datastore`, and PermissionDenied."""
    require_contributor(principal)
    if datastore.kind == DatastoreKind.HUB:
        raise SpecError(
            "datastore", f"the files of {datastore.name} lie on this hub: there is nothing to test"
        )
    path = check_path(path)
    nodes, left_out = _chosen_nodes(datastore, names)
    with transaction.atomic():
        # Of two people who begin one at once, the second gets the test of the first.
        datastore = (
            Datastore.objects.select_for_update(of=("self",)).select_related("workspace").get(pk=datastore.pk)
        )
        last = DatastoreTest.objects.filter(datastore=datastore).first()
        if last is not None and is_in_progress(last):
            return last
        if last is not None:
            last.delete()
        refusal = hub_refusal(datastore)
        test = DatastoreTest.objects.create(
            datastore=datastore,
            path=path,
            created_by=principal.user,
            hub_state=ProbeState.SKIPPED if refusal else ProbeState.WAITING,
            hub_reason=refusal,
            left_out=left_out,
        )
        if not refusal:
            send_task_soon(TaskName.TEST_DATASTORE, test.pk)
        for node in nodes:
            _order(test, node)
        audit.record(principal.user, "datastore.test", datastore.name, datastore.workspace)
    return test


def cancel_test(principal: Principal, datastore: Datastore) -> None:
    """Ends the test of the datastore that is in progress; does nothing without one. Raises
    PermissionDenied."""
    require_contributor(principal)
    now, reason = timezone.now(), f"{principal.user.username} canceled it."
    with transaction.atomic():
        orders = DataOrder.objects.select_for_update(of=("self",)).select_related("node")
        for order in orders.filter(test__datastore=datastore, ended_at=None):
            if order.claimed_at is None:
                order_lifecycle.finish(order, OrderState.CANCELED, reason, now)
            elif order.cancel_requested_at is None:
                order.cancel_requested_at, order.reason = now, reason
                order.save(update_fields=["cancel_requested_at", "reason"])
                wake_soon(order.node, order.pk, ORDER_ATTEMPT)
        DatastoreTest.objects.filter(
            datastore=datastore, hub_state__in=(ProbeState.WAITING, ProbeState.TESTING)
        ).update(hub_state=ProbeState.CANCELED, hub_reason=reason)


def _chosen_nodes(datastore: Datastore, names: Sequence[str] | None) -> tuple[list[Node], int]:
    """Returns the nodes, and how many were left out because there are too many."""
    nodes = usable_nodes(datastore.workspace)
    if names is None:
        # Those that can come first.
        nodes.sort(key=lambda node: bool(reading_refusal(node, datastore)))
        return nodes[:MAX_NODES], max(0, len(nodes) - MAX_NODES)
    by_name = {node.name: node for node in nodes}
    for name in names:
        if name not in by_name:
            listed = ", ".join(list(by_name)[:MAX_NODES]) or "none"
            raise SpecError("nodes", f"there is no node {name!r:.100}; there are: {listed}")
    if len(set(names)) > MAX_NODES:
        raise SpecError("nodes", f"{len(set(names))} nodes are named, and a test takes at most {MAX_NODES}")
    return [by_name[name] for name in dict.fromkeys(names)], 0


def _order(test: DatastoreTest, node: Node) -> None:
    order = data_lifecycle.order_test(test, node)
    if refusal := reading_refusal(node, test.datastore):
        order_lifecycle.finish(order, OrderState.FAILED, refusal, timezone.now())
