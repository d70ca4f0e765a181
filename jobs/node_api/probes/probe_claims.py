"""Answers a node's claim of an order about a datastore."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from clusters.models import Node
from datastores.models import Datastore
from datastores.states import DatastoreKind
from jobs.data_orders.order_address import probe_terms
from jobs.models import DataOrder
from jobs.node_api.order_assignment import GRACE_S
from jobs.node_orders import order_lifecycle
from jobs.node_orders.claimed_order import lock_offered
from jobs.node_orders.work_order import ORDER_ATTEMPT
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.shares import InputMount
from trainhub_launch.machine import PROBE
from trainhub_launch.order import EnvironmentSpec, NodeOrder, OrderKind
from trainhub_launch.plan import NodeCommand
from workspaces.models import User

# Nothing of an environment is used.
NO_ENVIRONMENT = EnvironmentSpec("none", "", "none")
# The name of the only input.
DATA = "data"


def claim_probe(node: Node, order_id: str, attempt: int, nonce: str, hub_url: str) -> NodeOrder:
    """Returns the order for `node`; a repeated claim with the same nonce gets the same one. Raises
    Refused."""
    with transaction.atomic():
        orders = DataOrder.objects.select_related(
            "node", "datastore", "test", "version__dataset__datastore", "created_by"
        )
        order: DataOrder = lock_offered(orders, node, order_id, attempt, nonce, capability=PROBE)
        if order.claimed_at is None:
            order_lifecycle.take_up(order, nonce, timezone.now())
        return _node_order(order, hub_url)


def _node_order(order: DataOrder, hub_url: str) -> NodeOrder:
    datastore, path = order.datastore, order.path
    probe = probe_terms(order, hub_url)
    return NodeOrder(
        run=order.pk,
        attempt=ORDER_ATTEMPT,
        command=NodeCommand(order.node.name, 0, order.node.address, ()),
        environment=NO_ENVIRONMENT,
        snapshot="",
        snapshot_size=0,
        masked=(probe["ticket"],),
        grace_s=GRACE_S,
        # A folder is read with the rights of this person's runs.
        person=_person(order.created_by),
        kind=OrderKind.PROBE,
        probe=probe,
        inputs={DATA: path} if datastore.is_folder else {},
        mounts={} if datastore.kind != DatastoreKind.NFS else {DATA: InputMount(datastore.share, path)},
        downloads={} if datastore.is_mounted else {DATA: _download(datastore, path)},
    )


def _download(datastore: Datastore, path: str) -> DataDownload:
    # Nothing is kept in the cache of the node, so no scope is needed.
    return DataDownload(datastore.store, path, datastore.secret, "")


def _person(user: User | None) -> str:
    return user.username if user is not None and not user.is_service_account else ""
