"""Whether a version of an environment is ready on a node, how long building it took there, and what became of
the builds that people ordered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from clusters.models import Node
from clusters.visibility import clusters_of, visible_nodes
from environments.models import EnvironmentVersion
from jobs.builds.models import EnvironmentBuild
from jobs.builds.states import BuildPurpose, BuildState
from jobs.models import PreparedEnvironment
from workspaces.models import Workspace

READY = "ready"


@dataclass(frozen=True)
class NodeEnvironment:
    """An environment on a node. `prepared`: what a run or a build left there; None if neither has. The node
    may have removed it since, to keep its cache small. `build`: the workspace's newest build there, or
    None."""

    node: Node
    prepared: PreparedEnvironment | None
    build: EnvironmentBuild | None

    @property
    def state(self) -> str:
        """Returns that of the build while it is not finished or if nothing came of it later, else `ready`;
        "" if the node knows nothing of the environment."""
        build = self.build
        if build is not None and not build.is_finished:
            return str(build.state)
        if self.is_ready and not self.has_failed_since:
            return READY
        return "" if build is None else str(build.state)

    @property
    def is_ready(self) -> bool:
        return self.prepared is not None

    @property
    def has_failed_since(self) -> bool:
        """Returns whether the newest build failed after the environment was last used."""
        build = self.build
        if build is None or build.state != BuildState.FAILED or build.ended_at is None:
            return False
        return self.prepared is None or build.ended_at > self.prepared.prepared_at

    @property
    def reason(self) -> str:
        """Returns why it is not ready, as far as a build says so."""
        return self.build.reason if self.build is not None and self.state == self.build.state else ""

    @property
    def prepared_at(self) -> datetime | None:
        return self.prepared.prepared_at if self.prepared else None

    @property
    def built_at(self) -> datetime | None:
        return self.prepared.built_at if self.prepared else None

    @property
    def build_s(self) -> float | None:
        return self.prepared.build_s if self.prepared else None


def prepared_in_clusters(workspace: Workspace) -> QuerySet[PreparedEnvironment]:
    """Returns what the nodes of the workspace's clusters have prepared, by the nodes' names."""
    return (
        PreparedEnvironment.objects.filter(node__cluster__in=clusters_of(workspace), node__revoked_at=None)
        .select_related("node__cluster")
        .order_by("node__name")
    )


def node_environments_of(version: EnvironmentVersion, workspace: Workspace) -> list[NodeEnvironment]:
    """Returns the version of the workspace's own environment on every node, as `node_environments` does."""
    return node_environments(workspace, version.environment.name, str(version.number), version.pk)


def node_environments(
    workspace: Workspace, name: str, version: str, own_version_id: int | None
) -> list[NodeEnvironment]:
    """Returns the version on every node that the workspace may use, by cluster and name."""
    rows = prepared_in_clusters(workspace).filter(name=name, version=version, own_version_id=own_version_id)
    prepared = {row.node_id: row for row in rows}
    builds: dict[int, EnvironmentBuild] = {}
    of_version = EnvironmentBuild.objects.filter(
        workspace=workspace,
        name=name,
        version=version,
        own_version_id=own_version_id,
        purpose=BuildPurpose.INSTALL,
    )
    for build in of_version.select_related("created_by", "node").order_by("created_at", "pk"):
        builds[build.node_id] = build
    return [
        NodeEnvironment(node, prepared.get(node.pk), builds.get(node.pk))
        for node in visible_nodes(workspace).filter(revoked_at=None)
    ]
