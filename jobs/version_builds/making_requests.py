"""Orders builds for people, whether a node is to install an environment or to make a version."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import PermissionDenied
from django.db import transaction

from clusters.models import Node
from clusters.visibility import visible_nodes
from environments import made_versions
from environments.curated_versions import demand_curated, resolve_again
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.builds.build_requests import build_refusal, check_not_deleted, request_builds
from jobs.builds.build_targets import BuildTarget, making_target
from jobs.builds.models import EnvironmentBuild
from jobs.builds.states import BuildPurpose
from jobs.version_builds import making_nodes
from jobs.version_builds.making_orders import order_making
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.states import Role


class NotLockedYet(SpecError):
    """The hub locks the environment first, and has begun to; the same request succeeds later."""


def request_target(
    principal: Principal, target: BuildTarget, names: Sequence[str] | None = None
) -> list[EnvironmentBuild]:
    """Orders the target on the nodes. A version that a node must make is ordered on one node, and not again
    while that is in progress. Raises SpecError with the field `nodes`, and PermissionDenied."""
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))
    if target.own is None:
        _require_locked(target)
    if target.purpose is not BuildPurpose.MAKE or target.own is None:
        return request_builds(principal, target, names)
    check_not_deleted(target)
    with transaction.atomic():
        versions = EnvironmentVersion.objects.select_for_update(of=("self",))
        version = versions.select_related("environment__workspace").get(pk=target.own.pk)
        builds = EnvironmentBuild.objects.filter(
            own_version=version, purpose=BuildPurpose.MAKE, ended_at=None
        )
        existing = builds.select_related("node__cluster", "created_by").first()
        if existing is not None or version.is_locked:
            return [existing] if existing is not None else []
        node = _chosen_node(version, names)
        made_versions.await_node_again(version)
        build = order_making(version, node, principal.user)
        audit.record(
            principal.user, "environment.build", str(version), principal.workspace, nodes=[node.name]
        )
    return [build]


def _require_locked(target: BuildTarget) -> None:
    """Has the hub lock a curated environment that it has not locked yet. Raises SpecError unless it is."""
    version = demand_curated(target.name)
    if version.is_locked:
        return
    if version.state == VersionState.FAILED:
        resolve_again(version)
    raise NotLockedYet(
        "version",
        f"the hub finds the packages of {target.name} first, once for all nodes; order it again when "
        f"/environments/{target.name}/ says that it is locked",
    )


def _chosen_node(version: EnvironmentVersion, names: Sequence[str] | None) -> Node:
    target = making_target(version)
    nodes = list(visible_nodes(version.environment.workspace).filter(revoked_at=None))
    if names is None:
        able = making_nodes.able_nodes(version)
        if not able:
            why = next((build_refusal(node, target) for node in nodes), "")
            raise SpecError("nodes", f"no node can build {version}: {why or 'add one under Clusters'}")
        return able[0]
    if len(names) != 1:
        raise SpecError("nodes", "name one node: the version is built once, or leave the field out")
    node = next((node for node in nodes if node.name == names[0]), None)
    if node is None:
        listed = ", ".join(node.name for node in nodes) or "none"
        raise SpecError("nodes", f"there is no node {names[0]!r:.100}; there are: {listed}")
    refusal = build_refusal(node, target)
    if refusal:
        raise SpecError("nodes", refusal)
    return node
