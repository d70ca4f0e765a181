"""Journals and announces nodes that have become silent, once each."""

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

EVENT_KINDS = {NodeStatus.UNREACHABLE: "silent", NodeStatus.LOST: "lost"}


def record_silent_nodes(now: datetime, span: ListeningWindow) -> None:
    """Journals and announces every node that has become unreachable or lost since the last call."""
    silent_since = now - timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    not_reporting = Node.objects.filter(revoked_at=None, last_report_at__lte=silent_since)
    if not not_reporting.exists():
        return  # the usual case, at a quarter of the cost of the query below
    recorded = {
        kind: Exists(
            NodeEvent.objects.filter(node=OuterRef("pk"), kind=kind, at__gte=OuterRef("last_report_at"))
        )
        for kind in EVENT_KINDS.values()
    }
    # The journal itself records what was announced, so a restarted worker does not announce it again.
    silent = not_reporting.exclude(recorded["lost"])
    for node in silent.annotate(is_silent_recorded=recorded["silent"]):
        node_status = status(node, now, span)
        if node_status is NodeStatus.LOST or (
            node_status is NodeStatus.UNREACHABLE and not node.is_silent_recorded
        ):
            _record(node, EVENT_KINDS[node_status], silence_s(node, now, span), now)


def _record(node: Node, kind: str, seconds: float, now: datetime) -> None:
    then = "; its runs end or are retried on other nodes" if kind == "lost" else "; its runs continue"
    with transaction.atomic():
        journal.record_event(node, kind, f"No report for {seconds:.0f} s{then}.", now)
        publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
