"""What the first use of an environment installs on a node, what builds took, and where it is ready."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from environments.curated import CURATED, INSTALLS
from environments.curated_versions import locked_curated_sizes
from jobs.builds.node_environments import prepared_in_clusters
from jobs.models import PreparedEnvironment
from trainhub_launch.spec import EnvironmentRef
from workspaces.models import Workspace


@dataclass(frozen=True)
class FirstUse:
    """The costs of an environment. `packages` and `download_bytes`: what its first use downloads on a node,
    None if that is not known. `build_s`, `built_on`, `built_at`: seconds, node and end of the latest build in
    the workspace's clusters. `nodes`: those that have prepared it, by name."""

    packages: int | None = None
    download_bytes: int | None = None
    build_s: float | None = None
    built_on: str = ""
    built_at: datetime | None = None
    nodes: tuple[str, ...] = ()


def first_uses(workspace: Workspace, cluster: str = "") -> dict[str, FirstUse]:
    """Returns the costs of every curated environment by its name; with `cluster`, `nodes` are only those of
    this cluster."""
    rows = [row for row in prepared_in_clusters(workspace) if row.own_version_id is None]
    locked = locked_curated_sizes()
    return {
        item.name: _first_use(
            [row for row in rows if (row.name, row.version) == (item.name, item.version)],
            cluster,
            locked.get(item.name) or _released_size(item.name),
        )
        for item in CURATED
    }


def own_first_uses(workspace: Workspace, cluster: str = "") -> dict[tuple[str, str], FirstUse]:
    """Returns the costs of the versions of the workspace's own environments that a node has prepared, by name
    and version."""
    by_version: dict[tuple[str, str], list[PreparedEnvironment]] = defaultdict(list)
    for row in prepared_in_clusters(workspace).filter(own_version__environment__workspace=workspace):
        by_version[row.name, row.version].append(row)
    return {key: _first_use(rows, cluster) for key, rows in by_version.items()}


def first_use_of(workspace: Workspace, ref: EnvironmentRef, cluster: str) -> FirstUse | None:
    """Returns the costs of the environment that a spec names; None for an interpreter of the node."""
    curated = first_uses(workspace, cluster).get(ref.name)
    if curated is not None:
        return curated
    if not ref.version or ref.name == "system":
        return None
    return own_first_uses(workspace, cluster).get((ref.name, ref.version), FirstUse())


def _released_size(name: str) -> tuple[int | None, int | None]:
    return INSTALLS[name].packages, INSTALLS[name].download_bytes


def _first_use(
    rows: Sequence[PreparedEnvironment], cluster: str, size: tuple[int | None, int | None] = (None, None)
) -> FirstUse:
    """`size`: the packages of the environment, and the bytes of their files."""
    builds = [(row.built_at, row) for row in rows if row.built_at is not None]
    built_at, latest = max(builds, key=lambda build: build[0], default=(None, None))
    return FirstUse(
        packages=size[0],
        download_bytes=size[1],
        build_s=latest.build_s if latest else None,
        built_on=latest.node.name if latest else "",
        built_at=built_at,
        nodes=tuple(row.node.name for row in rows if cluster in ("", row.node.cluster.name)),
    )
