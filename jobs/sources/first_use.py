"""What the first use of a curated environment installs on a node, and what earlier uses took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from clusters.visibility import clusters_of
from environments.curated import CURATED, INSTALLS
from jobs.models import PreparedEnvironment
from trainhub_launch.order import EnvironmentSpec
from workspaces.models import Workspace


@dataclass(frozen=True)
class FirstUse:
    """The costs of a curated environment. `packages` and `download_bytes`: what its first use downloads on a
    node, None if that is not known. `build_s`, `built_on`, `built_at`: seconds, node and end of the latest
    build in the workspace's clusters. `nodes`: those that have prepared it, by name."""

    packages: int | None = None
    download_bytes: int | None = None
    build_s: float | None = None
    built_on: str = ""
    built_at: datetime | None = None
    nodes: tuple[str, ...] = ()


def first_uses(workspace: Workspace, cluster: str = "") -> dict[str, FirstUse]:
    """Returns the costs of every curated environment by its name; with `cluster`, `nodes` are only those of
    this cluster."""
    rows = list(prepared_environments(workspace))
    return {item.name: _first_use(item, rows, cluster) for item in CURATED}


def prepared_environments(workspace: Workspace) -> QuerySet[PreparedEnvironment]:
    """Returns what the nodes of the workspace's clusters have prepared, in the order of the nodes' names."""
    return (
        PreparedEnvironment.objects.filter(node__cluster__in=clusters_of(workspace), node__revoked_at=None)
        .select_related("node__cluster")
        .order_by("node__name")
    )


def _first_use(environment: EnvironmentSpec, rows: list[PreparedEnvironment], cluster: str) -> FirstUse:
    own = [row for row in rows if (row.name, row.version) == (environment.name, environment.version)]
    builds = [(row.built_at, row) for row in own if row.built_at is not None]
    built_at, latest = max(builds, key=lambda build: build[0], default=(None, None))
    install = INSTALLS.get(environment.name)
    return FirstUse(
        packages=install.packages if install else None,
        download_bytes=install.download_bytes if install else None,
        build_s=latest.build_s if latest else None,
        built_on=latest.node.name if latest else "",
        built_at=built_at,
        nodes=tuple(row.node.name for row in own if cluster in ("", row.node.cluster.name)),
    )
