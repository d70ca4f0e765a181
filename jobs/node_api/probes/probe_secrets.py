"""Gives a node the value of the secret with which it reads a datastore for the hub."""

from __future__ import annotations

from django.utils import timezone

from clusters.models import Node
from datastores.store_secret import store_secret
from jobs.models import DataOrder
from jobs.node_orders import order_lifecycle
from jobs.node_orders.refusals import Refused
from jobs.node_orders.states import OrderState
from trainhub_launch.data.stores import SECRET_PREFIX
from workspaces.secrets import uses
from workspaces.secrets.errors import SecretsUnavailable


def take(node: Node, order_id: str, nonce: str) -> dict[str, str]:
    """Returns the value by its name in the order, until the order is over. Raises Refused."""
    orders = DataOrder.objects.select_related(
        "datastore__workspace", "created_by", "version__dataset", "node"
    )
    order = orders.filter(pk=order_id, node=node).first()
    if order is None or order.claimed_at is None or order.nonce != nonce:
        raise Refused("This order has been claimed with another nonce.")
    if order.is_finished:
        raise Refused("This order is over.")
    datastore, version = order.datastore, order.version
    kind = uses.DATASTORE if version is None else uses.DATASET
    subject = datastore.name if version is None else str(version)
    try:
        value = store_secret(datastore, kind, subject, order.created_by, node.name)
    except SecretsUnavailable as error:
        sentence = f"{error.message[:1].upper()}{error.message[1:]}."
        order_lifecycle.finish(order, OrderState.FAILED, sentence, timezone.now())
        raise Refused(sentence) from error
    return {f"{SECRET_PREFIX}{datastore.secret}": value} if value else {}
