"""All kinds of environments, by name."""

from __future__ import annotations

from collections.abc import Mapping

from environments.kinds.conda import CondaKind
from environments.kinds.dockerfile import DockerfileKind
from environments.kinds.image import ImageKind
from environments.kinds.kind import Kind, Maker
from environments.kinds.pip import PipKind
from environments.models import EnvironmentVersion
from environments.states import EnvironmentKind
from trainhub_launch.errors import SpecError

_PIP, _DOCKERFILE = PipKind(), DockerfileKind()
KINDS: Mapping[str, Kind] = {
    EnvironmentKind.PIP: _PIP,
    EnvironmentKind.CONDA: CondaKind(),
    EnvironmentKind.IMAGE: ImageKind(),
    EnvironmentKind.DOCKERFILE: _DOCKERFILE,
}
# Those whose versions a node may have to make.
MAKERS: Mapping[str, Maker] = {EnvironmentKind.PIP: _PIP, EnvironmentKind.DOCKERFILE: _DOCKERFILE}


def kind_named(name: str) -> Kind:
    """Raises SpecError if there is no kind of this name."""
    kind = KINDS.get(name)
    if kind is None:
        names = ", ".join(repr(str(known)) for known in KINDS)
        raise SpecError("kind", f"{name!r:.50} is not a kind of environment; choose one of {names}")
    return kind


def kind_of(version: EnvironmentVersion) -> Kind:
    return KINDS[version.kind]


def maker_of(version: EnvironmentVersion) -> Maker:
    """Returns the kind of a version that a node must make."""
    return MAKERS[version.kind]
