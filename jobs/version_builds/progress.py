"""Moves versions that a node must make on: orders the build, orders it again elsewhere if its node was lost,
or says why there is no result. Each call may be repeated without harm."""

from __future__ import annotations

import logging

from django.db import DatabaseError, transaction

from environments import made_versions
from environments.kinds.all_kinds import maker_of
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.builds.models import EnvironmentBuild
from jobs.builds.states import BuildPurpose, BuildState
from jobs.models import BuildFile
from jobs.version_builds import making_nodes
from jobs.version_builds.making_orders import order_making

log = logging.getLogger(__name__)
# On nodes that were lost meanwhile.
MAX_ORDERS = 3


def continue_version(version_id: int) -> None:
    """Does what is due for the version now."""
    with transaction.atomic():
        versions = EnvironmentVersion.objects.select_for_update(of=("self",))
        version = versions.select_related("environment__workspace").filter(pk=version_id).first()
        if version is None:
            return
        builds = EnvironmentBuild.objects.filter(own_version=version, purpose=BuildPurpose.MAKE)
        if version.started_at is not None:
            # A version that was resolved again waits for nothing that was ordered before.
            builds = builds.filter(created_at__gte=version.started_at)
        newest = builds.order_by("-created_at", "pk").select_related("node").first()
        if newest is None or newest.is_finished:
            # Either the result was accepted, and other rows name its files, or nothing of it counts.
            BuildFile.objects.filter(build__own_version=version, build__ended_at__isnull=False).delete()
        if version.state == VersionState.BUILDING and (newest is None or newest.is_finished):
            _advance(version, newest)


def advance_waiting() -> None:
    """Does the same for all versions that wait for a node, or whose message was lost. An error in one does
    not affect the others."""
    waiting = EnvironmentVersion.objects.filter(state=VersionState.BUILDING, environment__deleted_at=None)
    for version_id in list(waiting.order_by("created_at").values_list("pk", flat=True)):
        try:
            continue_version(version_id)
        except DatabaseError:
            raise
        except Exception:
            log.exception("Version %d of an environment could not be ordered", version_id)


def _advance(version: EnvironmentVersion, newest: EnvironmentBuild | None) -> None:
    if newest is None:
        _order(version, 1)
    elif newest.state == BuildState.CANCELED:
        made_versions.fail_building(version, f"The build on {newest.node.name} was canceled: {newest.reason}")
    elif newest.state == BuildState.BUILT:
        made_versions.fail_building(version, f"{newest.node.name} has built it, but the hub got no result.")
    elif not newest.is_lost:
        made_versions.fail_building(version, newest.reason)
    elif newest.order_number < MAX_ORDERS:
        _order(version, newest.order_number + 1, last_node=newest.node_id)
    else:
        made_versions.fail_building(
            version, f"It was ordered {MAX_ORDERS} times without a result: {newest.reason}"
        )


def _order(version: EnvironmentVersion, number: int, *, last_node: int | None = None) -> None:
    # Two people have made the same at once: it is made once.
    if made_versions.lock_with_earlier_result(version) or maker_of(version).awaits_other(version):
        return
    nodes = making_nodes.able_nodes(version)
    # The one that was lost only if there is no other.
    node = next((node for node in nodes if node.pk != last_node), nodes[0] if nodes else None)
    if node is not None:
        order_making(version, node, version.created_by, number)
