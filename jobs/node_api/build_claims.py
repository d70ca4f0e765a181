"""Answers a node's claim of a build with the order to make its environment."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from clusters.models import Node
from clusters.node_reports.inventory import interpreters_of
from environments import catalog
from jobs.builds.models import BUILD_ATTEMPT, EnvironmentBuild
from jobs.builds.states import BuildPurpose, BuildState
from jobs.image_registry import tickets
from jobs.node_api.order_assignment import GRACE_S
from jobs.node_orders import order_lifecycle
from jobs.node_orders.claimed_order import lock_offered
from jobs.node_orders.refusals import Refused
from jobs.order_downloads.package_tickets import making_package_access, package_access
from jobs.version_builds.tickets import making_order
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import BUILDS
from trainhub_launch.order import EnvironmentSpec, NodeOrder, OrderKind
from trainhub_launch.plan import NodeCommand
from trainhub_launch.spec import EnvironmentRef


def claim_build(node: Node, build_id: str, attempt: int, nonce: str, hub_url: str) -> NodeOrder:
    """Returns the order for `node`; a repeated claim with the same nonce gets the same one. Raises
    Refused. `hub_url`: the URL by which the node reaches the hub."""
    with transaction.atomic():
        builds = EnvironmentBuild.objects.select_related("workspace", "node", "own_version__environment")
        build: EnvironmentBuild = lock_offered(builds, node, build_id, attempt, nonce, capability=BUILDS)
        if not node.interpreters:
            # An agent of the former release reports before it has looked for them. A later report brings the
            # build again.
            raise Refused("This node has not reported its interpreters yet.")
        try:
            order = _build_order(build, hub_url)
        except SpecError as error:
            # It begins with the name of the environment.
            refusal = f"{error.message}."
            order_lifecycle.finish(build, BuildState.FAILED, refusal, timezone.now(), is_lost=True)
        else:
            if build.claimed_at is None:
                order_lifecycle.take_up(build, nonce, timezone.now())
            return order
    # Outside of the transaction, which keeps the end of the build.
    raise Refused(refusal)


def _build_order(build: EnvironmentBuild, hub_url: str) -> NodeOrder:
    index, ticket = _package_access(build, hub_url)
    image_registry = tickets.registry_of_build(build, hub_url)
    make = making_order(build, hub_url)
    secrets = (ticket, image_registry.token if image_registry else "", str(make.get("ticket", "")))
    return NodeOrder(
        run=build.pk,
        attempt=BUILD_ATTEMPT,
        command=NodeCommand(build.node.name, 0, build.node.address, ()),
        environment=_environment(build),
        snapshot="",
        snapshot_size=0,
        masked=tuple(filter(None, secrets)),
        grace_s=GRACE_S,
        package_index=index,
        package_ticket=ticket,
        image_registry=image_registry,
        kind=OrderKind.BUILD,
        make=make,
    )


def _package_access(build: EnvironmentBuild, hub_url: str) -> tuple[str, str]:
    if build.purpose == BuildPurpose.MAKE:
        return making_package_access(build, hub_url)
    ref = EnvironmentRef(build.name, build.version)
    return package_access(build.pk, BUILD_ATTEMPT, ref, build.workspace, build.node, hub_url)


def _environment(build: EnvironmentBuild) -> EnvironmentSpec:
    interpreters = interpreters_of(build.node)
    if build.purpose == BuildPurpose.MAKE and build.own_version is not None:
        return catalog.on_node(catalog.spec_to_make(build.own_version), interpreters)
    return catalog.resolve(EnvironmentRef(build.name, build.version), interpreters, build.workspace)
