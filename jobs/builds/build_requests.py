"""Orders and cancels builds for people."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters.models import Node
from clusters.node_reports import heartbeat
from clusters.node_reports.inventory import interpreters_of
from clusters.states import NodeStatus
from clusters.visibility import visible_nodes
from environments import catalog
from environments.models import Environment
from jobs.builds import build_lifecycle
from jobs.builds.build_targets import BuildTarget
from jobs.builds.models import BUILD_ATTEMPT, EnvironmentBuild, is_build_id
from jobs.builds.states import BuildState
from jobs.errors import Conflict
from jobs.node_orders import order_lifecycle
from jobs.task_messages import wake_soon
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import BUILDS
from trainhub_launch.scheduler.capabilities import unmet_capabilities
from trainhub_launch.scheduler.lacking import lacking_phrase
from workspaces import audit
from workspaces.access import Principal, lacking, may_operate, must_operate
from workspaces.models import Workspace
from workspaces.states import Role

# Builds of one node that have not ended. One is built at a time.
MAX_UNFINISHED_BUILDS = 20
MAX_LISTED = 100


def build_refusal(node: Node, target: BuildTarget) -> str:
    """Returns why the node cannot build the environment now, with the remedy, as a phrase; "" if it can."""
    if heartbeat.status(node, timezone.now()) is not NodeStatus.READY:
        return f"{node.name} does not report; start its agent, or choose another node"
    capabilities = node.capabilities.split()
    if BUILDS not in capabilities:
        return (
            f"{node.name} has version {node.agent_version} of the agent, which takes no orders to build; "
            "upgrade its agent, or start a run, which builds its environment by itself"
        )
    try:
        catalog.on_node(target.environment, interpreters_of(node))
    except SpecError as error:
        return f"{node.name}: {error.message}"
    for capability in unmet_capabilities(target.capabilities, capabilities):
        return f"{node.name} {lacking_phrase(capability, capabilities)}"
    return ""


def request_builds(
    principal: Principal, target: BuildTarget, names: Sequence[str] | None = None
) -> list[EnvironmentBuild]:
    """Orders the environment on the nodes, by default on all that can build it. Returns one build per node:
    where the same one waits or runs already, that one.

    Raises SpecError with the field `nodes`, and PermissionDenied."""
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))
    check_not_deleted(target)
    nodes = _chosen_nodes(principal.workspace, target, names)
    with transaction.atomic():
        # Of two people who order the same at once, the second gets the build of the first.
        workspace = Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
        existing = {build.node_id: build for build in _unfinished(workspace, target)}
        new = [_order(principal, target, node) for node in nodes if node.pk not in existing]
        if new:
            audit.record(
                principal.user,
                "environment.build",
                f"{target.name} {target.version}",
                workspace,
                nodes=[build.node.name for build in new],
            )
    by_node = existing | {build.node_id: build for build in new}
    return [by_node[node.pk] for node in nodes]


def check_not_deleted(target: BuildTarget) -> None:
    """Raises SpecError if the environment was deleted and only stays readable."""
    if target.own is not None and target.own.environment.deleted_at is not None:
        raise SpecError("version", f"{target.name} was deleted; make an environment of another name")


def find_build(workspace: Workspace, build_id: str) -> EnvironmentBuild | None:
    if not is_build_id(build_id):
        return None
    builds = EnvironmentBuild.visible_to(workspace).select_related(
        "node__cluster", "created_by", "own_version__environment"
    )
    return builds.filter(pk=build_id).first()


def newest_builds(workspace: Workspace, target: BuildTarget) -> QuerySet[EnvironmentBuild]:
    """Returns the builds of this version that were ordered last, the newest first."""
    builds = EnvironmentBuild.visible_to(workspace).select_related("node__cluster", "created_by")
    of_version = builds.filter(name=target.name, version=target.version)
    return of_version.filter(own_version=target.own).order_by("-created_at", "pk")[:MAX_LISTED]


def may_cancel(principal: Principal, build: EnvironmentBuild) -> bool:
    """Returns whether this person may cancel the build: of one for everybody, operators alone."""
    return may_operate(principal.user) if build.workspace_id is None else principal.may(Role.CONTRIBUTOR)


def cancel_build(principal: Principal, build_id: str) -> EnvironmentBuild:
    """Cancels a build. Raises Conflict if it has ended, and PermissionDenied."""
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))
    with transaction.atomic():
        builds = EnvironmentBuild.visible_to(principal.workspace).select_related("node")
        build = builds.select_for_update(of=("self",)).get(pk=build_id)
        if not may_cancel(principal, build):
            must_operate(principal.user)
        if build.is_finished:
            raise Conflict(f"The build has ended already: it is {build.state}.")
        now, reason = timezone.now(), f"{principal.user.username} canceled it."
        audit.record(principal.user, "environment.build_canceled", str(build), principal.workspace)
        if build.claimed_at is None:
            order_lifecycle.finish(build, BuildState.CANCELED, reason, now)
        elif build.cancel_requested_at is None:
            build.cancel_requested_at, build.reason = now, reason
            build.save(update_fields=["cancel_requested_at", "reason"])
            wake_soon(build.node, build.pk, BUILD_ATTEMPT)
    return build


def cancel_environment_builds(environment: Environment, reason: str) -> None:
    """Ends all builds of the environment's versions, and with them their tickets. Nodes that have begun one
    are told to stop it."""
    unfinished = EnvironmentBuild.objects.filter(own_version__environment=environment, ended_at=None)
    for build in unfinished.select_for_update(of=("self",)).select_related("node"):
        order_lifecycle.finish(build, BuildState.CANCELED, reason, timezone.now())


def _chosen_nodes(workspace: Workspace, target: BuildTarget, names: Sequence[str] | None) -> list[Node]:
    nodes = list(visible_nodes(workspace).filter(revoked_at=None))
    refusals = {node.name: build_refusal(node, target) for node in nodes}
    if names is None:
        able = [node for node in nodes if not refusals[node.name]]
        if not able:
            why = next(iter(refusals.values()), "there is no node; add one under Clusters")
            raise SpecError("nodes", f"no node can build {target.name} {target.version}: {why}")
        return able
    for name in names:
        if name not in refusals:
            listed = ", ".join(refusals) or "none"
            raise SpecError("nodes", f"there is no node {name!r:.100}; there are: {listed}")
        if refusals[name]:
            raise SpecError("nodes", refusals[name])
    if not names:
        raise SpecError("nodes", "name at least one node, or leave the field out for all that can build it")
    return [node for node in nodes if node.name in names]


def _unfinished(workspace: Workspace, target: BuildTarget) -> QuerySet[EnvironmentBuild]:
    builds = EnvironmentBuild.objects.select_related("node__cluster", "created_by")
    return builds.filter(workspace=workspace, name=target.name, version=target.version, ended_at=None)


def _order(principal: Principal, target: BuildTarget, node: Node) -> EnvironmentBuild:
    unfinished = EnvironmentBuild.objects.filter(node=node, ended_at=None).count()
    if unfinished >= MAX_UNFINISHED_BUILDS:
        raise SpecError(
            "nodes",
            f"{unfinished} builds wait on {node.name} already; wait until one of them has ended, or choose "
            "another node",
        )
    build = EnvironmentBuild.objects.create(
        workspace=principal.workspace,
        node=node,
        name=target.name,
        version=target.version,
        own_version=target.own,
        created_by=principal.user,
    )
    build_lifecycle.offer_soon(node)
    return build
