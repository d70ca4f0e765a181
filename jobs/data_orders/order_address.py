"""Where the node of an order about a datastore brings its result."""

from __future__ import annotations

from jobs.models import DataOrder
from jobs.node_orders.tickets import upload_ticket

ADDRESS = "/api/v1/node/data-orders"


def probe_terms(order: DataOrder, hub_url: str) -> dict[str, str]:
    """Returns what the node is to do, as it stands in its order."""
    return {
        "work": order.work,
        "upload": f"{hub_url.rstrip('/')}{ADDRESS}/{order.pk}",
        "ticket": upload_ticket(order.pk),
    }
