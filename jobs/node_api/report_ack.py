"""The steps that the fast and the full way of answering a report share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from django.conf import settings

from clusters.models import Node
from clusters.telemetry import intake, live_samples
from jobs.node_api.assignment import Assignment, Key
from trainhub_launch.report import Ack, Report

# Seconds between the reports of a node that has runs or is watched, and of one that has neither.
BUSY_S, IDLE_S = 1.0, 5.0


def report_interval_s(node: Node, assignments: Mapping[Key, Assignment]) -> float:
    """Returns the seconds to the node's next report if nothing happens meanwhile."""
    is_busy = bool(assignments) or live_samples.wants_samples(node.pk)
    # However little patience the hub has, a node that lives is heard twice within it.
    return min(BUSY_S if is_busy else IDLE_S, settings.NODE_UNREACHABLE_AFTER / 2)


def complete_ack(node: Node, report: Report, ack: Ack, now: datetime) -> Ack:
    """Ingests the report's measurements and GPU events, and returns `ack` with the results added."""
    buckets_until, events_until = intake.ingest_telemetry(node, report, now)
    return replace(
        ack,
        buckets_until=buckets_until,
        events_until=events_until,
        is_watched=live_samples.wants_samples(node.pk),
        upgrade=node.upgrade_order or 0,
    )
