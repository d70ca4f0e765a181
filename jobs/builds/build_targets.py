"""What nodes can be ordered to build: an environment, or what a version consists of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from environments import catalog
from environments.curated_versions import stored_curated
from environments.kinds.all_kinds import kind_of, maker_of
from environments.models import EnvironmentVersion
from environments.states import VersionState
from jobs.builds.states import BuildPurpose
from trainhub_launch.errors import SpecError
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.spec import EnvironmentRef
from workspaces.models import Workspace

MAX_NUMBER_DIGITS = 9


@dataclass(frozen=True)
class BuildTarget:
    """An environment that nodes can build. `own`: the version of a workspace's own one, or of a curated one
    that a node makes; None for a curated one. `purpose`: to install it, or to make what it consists of."""

    environment: EnvironmentSpec
    own: EnvironmentVersion | None
    purpose: BuildPurpose = BuildPurpose.INSTALL

    @property
    def name(self) -> str:
        return self.environment.name

    @property
    def version(self) -> str:
        return self.environment.version

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """Returns those that a node must have for it, besides taking orders to build."""
        if self.own is None:
            locked = catalog.locked_version(EnvironmentRef(self.name, self.version), None)
            return frozenset() if locked is None else catalog.version_capabilities(locked)
        if self.purpose is BuildPurpose.MAKE:
            return frozenset({maker_of(self.own).making_capability})
        return catalog.version_capabilities(self.own)


def making_target(version: EnvironmentVersion) -> BuildTarget:
    """Returns the version as what a node is to make."""
    return BuildTarget(catalog.spec_to_make(version), version, BuildPurpose.MAKE)


def find_build_target(workspace: Workspace, name: str, version: str) -> BuildTarget | None:
    """Returns the version of an environment, own or curated; None if there is none. Raises SpecError if nodes
    can neither install nor make it."""
    if version.isdecimal() and len(version) <= MAX_NUMBER_DIGITS:
        own = catalog.find_version(workspace, name, int(version))
        if own is not None:
            return _own_target(own)
    if name == catalog.SYSTEM or name not in catalog.environment_names(workspace):
        return None
    curated = stored_curated(name)
    if curated is not None and _waits_for_node(curated) and version == str(curated.number):
        return making_target(curated)
    try:
        return BuildTarget(catalog.find(EnvironmentRef(name, version), workspace), None)
    except SpecError:
        return None


def _own_target(own: EnvironmentVersion) -> BuildTarget:
    if own.is_locked:
        return BuildTarget(kind_of(own).node_spec(own), own)
    if _waits_for_node(own):
        return making_target(own)
    raise SpecError("version", f"{own} is {own.state}; only a locked version can be built")


def _waits_for_node(version: EnvironmentVersion) -> bool:
    return bool(version.draft) and version.state in (VersionState.BUILDING, VersionState.FAILED)
