"""Which nodes can read a datastore for the hub, and why others cannot."""

from __future__ import annotations

from django.db.models import Count
from django.utils import timezone

from clusters.models import Node
from clusters.node_reports import heartbeat
from clusters.states import NodeStatus
from clusters.visibility import visible_nodes
from datastores.models import Datastore
from datastores.states import DatastoreKind
from jobs.models import AttemptNode, DataOrder
from trainhub_launch.machine import DOWNLOADS, MOUNTS, PROBE
from trainhub_launch.scheduler.lacking import lacking_phrase
from workspaces.models import Workspace


def usable_nodes(workspace: Workspace) -> list[Node]:
    """Returns the nodes of the clusters that the workspace may use, by cluster and name."""
    return list(visible_nodes(workspace).filter(revoked_at=None))


def reading_refusal(node: Node, datastore: Datastore) -> str:
    """Returns why the node cannot read the datastore for the hub now, with the remedy, as a sentence; "" if
    it can."""
    if heartbeat.status(node, timezone.now()) is not NodeStatus.READY:
        return f"{node.name} does not report: start its agent."
    capabilities = node.capabilities.split()
    if PROBE not in capabilities:
        return f"Its agent must be upgraded: version {node.agent_version} cannot test or list datastores."
    if datastore.kind == DatastoreKind.NFS and MOUNTS not in capabilities:
        return f"It {lacking_phrase(MOUNTS)}."
    if not datastore.is_mounted and DOWNLOADS not in capabilities:
        return "Its agent lacks obstore, which reads stores: install it for the agent's Python."
    return ""


def reading_nodes(datastore: Datastore) -> list[Node]:
    """Returns the nodes that can read the datastore now, those with the least to do first."""
    able = [node for node in usable_nodes(datastore.workspace) if not reading_refusal(node, datastore)]
    orders = DataOrder.objects.filter(node__in=able, ended_at=None).order_by()
    runs = AttemptNode.objects.filter(node__in=able, settled_at=None).order_by()
    counts = [dict(rows.values_list("node_id").annotate(Count("pk"))) for rows in (orders, runs)]
    return sorted(able, key=lambda node: (*(count.get(node.pk, 0) for count in counts), node.name))
