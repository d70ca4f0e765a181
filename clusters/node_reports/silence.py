"""Nodes that have fallen silent: said once, so that pages and journals show it without being asked."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from clusters import journal
from clusters.models import Node, NodeEvent
from clusters.node_reports.heartbeat import silence_s, status
from clusters.node_reports.hub_uptime import ListeningWindow
from clusters.states import NodeStatus
from live.publish import publish_on_commit
from live.topics import node_topic

KIND_OF = {NodeStatus.UNREACHABLE: "silent", NodeStatus.LOST: "lost"}


def record_silent_nodes(now: datetime, span: ListeningWindow) -> None:
    """Journal and announce every node that has become unreachable or lost since this was last called."""
    last = now - timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    said = {
        kind: Exists(
            NodeEvent.objects.filter(node=OuterRef("pk"), kind=kind, at__gte=OuterRef("last_report_at"))
        )
        for kind in KIND_OF.values()
    }
    silent = Node.objects.filter(revoked_at=None, last_report_at__lte=last).exclude(said["lost"])
    for node in silent.annotate(told=said["silent"]):
        found = status(node, now, span)
        if found is NodeStatus.LOST or (found is NodeStatus.UNREACHABLE and not node.told):
            _say(node, KIND_OF[found], silence_s(node, now, span), now)


def _say(node: Node, kind: str, seconds: float, now: datetime) -> None:
    then = "; its runs end, or are tried again elsewhere" if kind == "lost" else "; its runs go on"
    with transaction.atomic():
        journal.note(node, kind, f"Not heard from for {seconds:.0f} s{then}.", now)
        publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
