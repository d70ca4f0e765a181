"""The periodic check of all builds: repeats offers whose trigger was lost, and ends builds whose node does
not answer, so that none is stuck."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from clusters.node_reports import heartbeat
from clusters.node_reports.hub_uptime import ListeningWindow
from clusters.states import NodeStatus
from jobs.builds import build_lifecycle
from jobs.builds.models import EnvironmentBuild
from jobs.builds.states import BuildState

CANCEL_PATIENCE_S = 30


def check_builds(now: datetime, span: ListeningWindow) -> None:
    """Checks every build that is not settled."""
    unsettled = EnvironmentBuild.objects.filter(settled_at=None).select_related("node")
    offered_to = {build.node_id for build in unsettled if build.offered_at is not None}
    for build in unsettled:
        if build.node.removed_at is not None:
            _end_on_removed_node(build, now)
        elif build.offered_at is None:
            if build.node_id not in offered_to:
                offered_to.add(build.node_id)
                build_lifecycle.offer_next(build.node_id)
        elif not build.is_finished:
            _check_offered(build, build.offered_at, now, span)


def _check_offered(
    build: EnvironmentBuild, offered_at: datetime, now: datetime, span: ListeningWindow
) -> None:
    name = build.node.name
    status = heartbeat.status(build.node, now, span)
    if build.claimed_at is None:
        # No node can claim anything while the hub does not listen.
        waited_s = ((span.until or now) - max(offered_at, span.since)).total_seconds()
        if waited_s >= settings.NEVER_STARTED_AFTER:
            reason = f"{name} did not take it up within {settings.NEVER_STARTED_AFTER:.0f} s. "
            reason += "Order it again when the node reports."
            build_lifecycle.finish_build(build, BuildState.FAILED, reason, now, is_lost=True)
    elif status in (NodeStatus.LOST, NodeStatus.REVOKED):
        silent_s = heartbeat.silence_s(build.node, now, span)
        reason = (
            f"Node {name} was removed while it built."
            if status is NodeStatus.REVOKED
            else f"Node {name} has not reported for {silent_s:.0f} s. Order it again when the node reports."
        )
        build_lifecycle.finish_build(build, BuildState.FAILED, reason, now, is_lost=True)
    elif (
        build.cancel_requested_at is not None
        and status is not NodeStatus.READY
        and (now - build.cancel_requested_at).total_seconds() >= CANCEL_PATIENCE_S
    ):
        build_lifecycle.finish_build(build, BuildState.CANCELED, build.reason, now)


def _end_on_removed_node(build: EnvironmentBuild, now: datetime) -> None:
    """A removed node confirms nothing any more: its removal implies that nothing runs there."""
    reason = f"Node {build.node.name} was removed."
    if not build_lifecycle.finish_build(build, BuildState.FAILED, reason, now, is_over=True, is_lost=True):
        build_lifecycle.settle_build(build, now)
