"""Finds the environment that a run names: an interpreter of the node, a curated environment, or a version of
one of the workspace's own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from django.db.models import QuerySet

from environments.curated import BY_NAME, CURATED, LOCK_PYTHON
from environments.curated_versions import curated_source, stored_curated
from environments.kinds.all_kinds import kind_of
from environments.models import Environment, EnvironmentVersion
from environments.packages.glibc_needs import glibc_capabilities
from environments.states import EnvironmentKind, VersionState
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import Interpreter
from trainhub_launch.order import MAKE, EnvironmentSpec
from trainhub_launch.spec import EnvironmentRef, RunSpec
from workspaces.database.compiled_queries import compiled
from workspaces.models import Workspace

SYSTEM = "system"


def environment_names(workspace: Workspace) -> tuple[str, ...]:
    """Returns the names of all environments that runs of the workspace can use."""
    own = [name for (name,) in _own_names(workspace.pk)]
    return (SYSTEM, *own, *(environment.name for environment in CURATED))


@compiled
def _own_names(workspace_id: int) -> QuerySet[Environment, tuple[str]]:
    return Environment.objects.filter(workspace_id=workspace_id, deleted_at=None).values_list("name")


def resolve(
    ref: EnvironmentRef, interpreters: Collection[Interpreter], workspace: Workspace | None
) -> EnvironmentSpec:
    """Returns the environment for `ref` on a node that has `interpreters`.

    Raises SpecError with the available names or versions if there is no such environment."""
    return on_node(find(ref, workspace), interpreters)


def find(ref: EnvironmentRef, workspace: Workspace | None) -> EnvironmentSpec:
    """Returns the environment for `ref` on no particular node: its `python` is a version instead of a path,
    or "" for the node's default. A curated environment that this hub has not locked yet is without a lock.
    Raises SpecError if there is none, or if one of the workspace's own is not locked."""
    if ref.name == SYSTEM:
        return EnvironmentSpec(name=SYSTEM, version=ref.version, kind="system", python=ref.version)
    curated = [environment for environment in CURATED if environment.name == ref.name]
    for environment in curated:
        if ref.version in ("", environment.version):
            locked = _locked_curated(ref)
            return environment if locked is None else kind_of(locked).node_spec(locked)
    if curated:
        versions = ", ".join(environment.version for environment in curated)
        raise SpecError(
            "environment.version", f"{ref.name} has no version {ref.version!r}; it has {versions}"
        )
    if workspace is None:
        raise SpecError("environment.name", f"{ref.name!r} is no environment that everybody may use")
    version = own_version(ref, workspace)
    return kind_of(version).node_spec(version)


def spec_to_make(version: EnvironmentVersion) -> EnvironmentSpec:
    """Returns what a node that is to make the version gets instead of the environment, for no particular
    node."""
    return EnvironmentSpec(version.environment.name, str(version.number), kind=MAKE, python=version.python)


def find_version(workspace: Workspace, name: str, number: int) -> EnvironmentVersion | None:
    """Returns the version of the workspace's own environment, in whatever state; None if there is none."""
    if "\x00" in name or number > 2**31 - 1:
        return None
    versions = EnvironmentVersion.objects.select_related("environment", "created_by")
    return versions.filter(environment__workspace=workspace, environment__name=name, number=number).first()


def own_version(ref: EnvironmentRef, workspace: Workspace) -> EnvironmentVersion:
    """Returns the version of the workspace's own environment: if `ref` names none, the newest locked one that
    is not outdated, or the newest locked one. Raises SpecError if there is none, or if it is not locked."""
    versions = EnvironmentVersion.objects.select_related("environment").filter(
        environment__workspace=workspace, environment__name=ref.name
    )
    newest = None if "\x00" in ref.name else versions.order_by("-number").first()
    if newest is None:
        raise SpecError(
            "environment.name",
            f"{ref.name!r} is not an environment; choose one of {', '.join(environment_names(workspace))}",
        )
    if newest.environment.deleted_at is not None:
        raise SpecError(
            "environment.name",
            f"{ref.name!r} was deleted; choose one of {', '.join(environment_names(workspace))}",
        )
    if not ref.version:
        locked = versions.filter(state=VersionState.LOCKED).order_by("-number")
        version = locked.filter(outdated="").first() or locked.first() or newest
    else:
        version = _numbered(ref, [*versions])
    if version.state == VersionState.RESOLVING:
        raise SpecError(
            "environment.version", f"{version} is still being resolved; submit again when it is locked"
        )
    if version.state == VersionState.BUILDING:
        raise SpecError(
            "environment.version",
            f"{version} is still being built on a node; submit again when it is locked, or see at "
            f"/environments/{ref.name}/versions/{version.number}/ what it waits for",
        )
    if version.state == VersionState.FAILED:
        raise SpecError(
            "environment.version",
            f"{version} could not be resolved ({version.failure.rstrip('.')}); edit it at "
            f"/environments/{ref.name}/versions/{version.number}/",
        )
    return version


def locked_version(ref: EnvironmentRef, workspace: Workspace | None) -> EnvironmentVersion | None:
    """Returns the locked version that the environment stands for, whether curated or the workspace's own;
    None for an interpreter, and if there is none."""
    if ref.name in BY_NAME:
        return _locked_curated(ref)
    if workspace is None or ref.name == SYSTEM:
        return None
    try:
        return own_version(ref, workspace)
    except SpecError:
        return None


def _locked_curated(ref: EnvironmentRef) -> EnvironmentVersion | None:
    version = stored_curated(ref.name)
    if version is None or not version.is_locked or ref.version not in ("", str(version.number)):
        return None
    return version


class PythonLookup:
    """Which Python the environments of runs need on their nodes. Remembers the answers: it lives for one
    pass over the queue."""

    def __init__(self) -> None:
        self._pythons: dict[tuple[int, EnvironmentRef], str] = {}

    def python_of(self, ref: EnvironmentRef, workspace_id: int) -> str:
        """Returns the version or path of the Python that a node must have, "" for any."""
        if ref.name == SYSTEM:
            return ref.version
        if ref.name not in BY_NAME and (not ref.version.isdecimal() or "\x00" in ref.name):
            return ""
        key = workspace_id, ref
        if key not in self._pythons:
            self._pythons[key] = _python_of_version(ref, workspace_id)
        return self._pythons[key]


def _python_of_version(ref: EnvironmentRef, workspace_id: int) -> str:
    if ref.name in BY_NAME:
        curated = stored_curated(ref.name)
        return "" if curated is None else curated.python
    versions = EnvironmentVersion.objects.filter(
        environment__workspace=workspace_id,
        environment__name=ref.name,
        number=min(int(ref.version), 2**31 - 1),
    )
    return versions.values_list("python", flat=True).first() or ""


def needed_capabilities(ref: EnvironmentRef, workspace: Workspace) -> frozenset[str]:
    """Returns the capabilities that nodes must have for the environment; none if it does not exist."""
    version = locked_version(ref, workspace)
    return frozenset() if version is None else version_capabilities(version)


def version_capabilities(version: EnvironmentVersion) -> frozenset[str]:
    """Returns the capabilities that nodes must have for the version: those of its kind, and the glibc that
    its wheels need."""
    return kind_of(version).capabilities | glibc_capabilities([version.pk]).get(version.pk, frozenset())


def with_version(spec: RunSpec, workspace: Workspace) -> RunSpec:
    """Returns the spec with the number of the newest locked version, if it names one of the workspace's own
    environments without a version: the run and its clones keep it."""
    ref = spec.environment
    if ref.version or ref.name == SYSTEM or "\x00" in ref.name:
        return spec
    is_own = Environment.objects.filter(workspace=workspace, name=ref.name).exists()
    if not is_own:
        return spec
    try:
        version = own_version(ref, workspace)
    except SpecError:
        # The preview reports it as a finding, together with everything else.
        return spec
    return replace(spec, environment=EnvironmentRef(ref.name, str(version.number)))


def curated_version(name: str) -> EnvironmentVersion | None:
    """Returns a curated environment as this hub has locked it; until one was needed, in the shape of a
    version that is in no database, with the shipped lock. None if there is no such environment."""
    item = BY_NAME.get(name)
    if item is None:
        return None
    return stored_curated(name) or EnvironmentVersion(
        environment=Environment(name=name),
        number=int(item.spec.version),
        kind=EnvironmentKind.PIP,
        source=curated_source(item),
        python=LOCK_PYTHON if item.lock else "",
        lock=item.lock,
        state=VersionState.LOCKED,
        package_count=item.install.packages,
        download_bytes=item.install.download_bytes,
        outdated=item.deprecated,
        successor=item.successor,
    )


def on_node(environment: EnvironmentSpec, interpreters: Collection[Interpreter]) -> EnvironmentSpec:
    """Returns the environment with the path of the node's interpreter. Raises SpecError with the versions
    that the node has, if it lacks the one needed."""
    python = environment.python
    if not python:
        return environment
    for interpreter in interpreters:
        if interpreter.is_python(python):
            is_system = environment.kind == "system"
            version = interpreter.version if is_system else environment.version
            return replace(environment, version=version, python=interpreter.path)
    has = ", ".join(f"{item.version} ({item.path})" for item in interpreters) or "none"
    needs = "" if environment.kind == "system" else f"{environment.name} {environment.version} needs Python "
    if needs:
        raise SpecError(
            "environment.version",
            f"{needs}{python}, which is not on the chosen node; it has {has}. Make a "
            "version for one of these",
        )
    raise SpecError("environment.version", f"no Python {python!r} is on the chosen node; it has {has}")


def _numbered(ref: EnvironmentRef, versions: list[EnvironmentVersion]) -> EnvironmentVersion:
    for version in versions:
        if str(version.number) == ref.version:
            return version
    numbers = ", ".join(str(version.number) for version in versions)
    raise SpecError("environment.version", f"{ref.name} has no version {ref.version!r}; it has {numbers}")
