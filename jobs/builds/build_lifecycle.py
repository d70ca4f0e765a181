"""The states of builds, from the offer to a node to their end. Every change is guarded by the state that it
is allowed from, so that of two processes only one makes it."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from clusters.models import Node
from clusters.task_messages import send_task_soon
from jobs.builds.models import BUILD_ATTEMPT, EnvironmentBuild
from jobs.builds.states import UNFINISHED, BuildPurpose, BuildState
from jobs.logs import log_store
from jobs.task_messages import wake_soon
from live.publish import publish_on_commit
from live.topics import run_topic
from trainhub_launch.states import Phase
from workspaces.task_names import TaskName


def offer_soon(node: Node) -> None:
    """Has the worker offer the node its next build, once the transaction has committed."""
    send_task_soon(TaskName.OFFER_BUILD, node.pk)


def offer_next(node_id: int) -> None:
    """Offers the node its oldest waiting build and wakes it, unless it has one already."""
    builds = EnvironmentBuild.objects.filter(node_id=node_id, settled_at=None)
    try:
        with transaction.atomic():
            if builds.exclude(offered_at=None).exists():
                return
            waiting = builds.filter(ended_at=None).select_related("node").order_by("created_at", "pk")
            build = waiting.first()
            if build is not None:
                builds.filter(pk=build.pk, offered_at=None).update(offered_at=timezone.now())
                wake_soon(build.node, build.pk, BUILD_ATTEMPT)
    except IntegrityError:
        # Another process has offered one in the same moment, and wakes the node.
        return


def take_up(build: EnvironmentBuild, nonce: str, at: datetime) -> None:
    """Marks the build as claimed by its node. The caller has locked its row."""
    build.nonce, build.claimed_at, build.state = nonce, at, BuildState.BUILDING
    build.save(update_fields=["nonce", "claimed_at", "state"])
    _publish(build)


def finish_build(
    build: EnvironmentBuild,
    state: BuildState,
    reason: str,
    at: datetime,
    *,
    is_over: bool = False,
    is_lost: bool = False,
) -> bool:
    """Ends the build. Returns False if it had ended before.

    `is_over`: nothing of it runs on the node, and no more of its log will come; always so before the node has
    claimed it. `is_lost`: another node may succeed."""
    with transaction.atomic():
        unfinished = EnvironmentBuild.objects.filter(pk=build.pk, state__in=UNFINISHED)
        if not unfinished.update(state=state, reason=reason[:4000], ended_at=at, is_lost=is_lost):
            return False
        build.state, build.reason, build.ended_at = state, reason, at
        if is_over or build.claimed_at is None:
            settle_build(build, at)
        elif build.phase != Phase.DONE:
            # It reports, and gets the order to stop what is left.
            wake_soon(build.node, build.pk, BUILD_ATTEMPT)
        if build.purpose == BuildPurpose.MAKE and build.own_version_id is not None:
            send_task_soon(TaskName.ADVANCE_VERSION, build.own_version_id)
        _publish(build)
    return True


def settle_build(build: EnvironmentBuild, at: datetime) -> None:
    """Marks the build as settled, closes its log, and lets the node's next build begin."""
    EnvironmentBuild.objects.filter(pk=build.pk, settled_at=None).update(settled_at=at)
    build.settled_at = at
    log_store.close(build.pk, BUILD_ATTEMPT)
    offer_soon(build.node)


def _publish(build: EnvironmentBuild) -> None:
    publish_on_commit(
        run_topic(build.pk), {"type": "build.changed", "build": build.pk, "state": str(build.state)}
    )
