"""Orders to nodes to make a version."""

from __future__ import annotations

from clusters.models import Node
from environments.models import EnvironmentVersion
from jobs.builds import build_lifecycle
from jobs.builds.models import EnvironmentBuild
from jobs.builds.states import BuildPurpose
from workspaces.models import User


def order_making(
    version: EnvironmentVersion, node: Node, person: User | None, number: int = 1
) -> EnvironmentBuild:
    """Orders the node to make the version. `number`: 1, or more if nodes were lost with it before. The caller
    has locked the version, and knows that no other build of it is open."""
    build = EnvironmentBuild.objects.create(
        workspace=version.environment.workspace,
        node=node,
        name=version.environment.name,
        version=str(version.number),
        own_version=version,
        created_by=person,
        purpose=BuildPurpose.MAKE,
        order_number=number,
    )
    build_lifecycle.offer_soon(node)
    return build
