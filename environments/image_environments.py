"""Tells which environments are container images: runs in them need nodes with a container engine."""

from __future__ import annotations

from collections.abc import Collection

from environments.catalog import SYSTEM
from environments.curated import CURATED
from environments.models import EnvironmentVersion
from trainhub_launch.order import IMAGE
from trainhub_launch.spec import EnvironmentRef

NOT_OWN = {SYSTEM, *(environment.name for environment in CURATED)}
# Id of the workspace, name and version.
EnvironmentKey = tuple[int, str, str]


def key_of(workspace: int, ref: EnvironmentRef) -> EnvironmentKey:
    return workspace, ref.name, ref.version


def among(keys: Collection[EnvironmentKey]) -> set[EnvironmentKey]:
    """Returns those of `keys` that are images. A key without a version stands for the newest one. One query,
    and none if no key can be a workspace's own environment."""
    names = {name for _, name, _ in keys if name not in NOT_OWN and "\x00" not in name}
    if not names:
        return set()
    rows = EnvironmentVersion.objects.filter(kind=IMAGE, environment__name__in=names)
    found = set(rows.values_list("environment__workspace_id", "environment__name", "number"))
    versions = {(workspace, name, str(number)) for workspace, name, number in found}
    unnumbered = {(workspace, name, "") for workspace, name, _ in found}
    return set(keys) & (versions | unnumbered)
