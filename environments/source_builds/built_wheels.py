"""The wheels that nodes have built: which are accepted for a version, and which another version of the same
workspace uses again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.db import transaction
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from environments.errors import Unresolvable
from environments.lock_file import LockedPackage, read_lock, write_lock
from environments.models import BuiltWheel, EnvironmentVersion, LockedFile
from environments.packages.file_list import is_usable_wheel
from environments.packages.wheel_metadata import read_metadata
from environments.projects.pylock import marker_values
from environments.source_builds.draft import PackageBuild, WheelDraft
from workspaces.stored_files import blobs

MAX_FILENAME = 255
# How the names of wheels end that have nothing compiled.
PURE = "-any.whl"


@dataclass(frozen=True)
class UploadedWheel:
    """A wheel as the node names it, whose bytes are stored."""

    filename: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class _WheelMetadata:
    """`needs`: the packages that the wheel needs with the Python of the version."""

    name: str
    version: Version
    needs: tuple[Requirement, ...]


@dataclass(frozen=True)
class BuildRecord:
    """The id of a build, and the name of its node with its version of glibc, as far as it reports one."""

    build: str = ""
    node: str = ""
    glibc: str = ""


def reuse_wheels(version: EnvironmentVersion, draft: WheelDraft) -> str:
    """Returns the lock with the wheels that the workspace has built from exactly the same before; "" if one
    is missing."""
    wheels = [_find_built(version, package) for package in draft.packages]
    existing = [wheel for wheel in wheels if wheel is not None]
    if len(existing) < len(draft.packages):
        return ""
    return _lock_with(version, draft, existing)


def accept_wheels(
    version: EnvironmentVersion, draft: WheelDraft, wheels: Collection[UploadedWheel], record: BuildRecord
) -> str:
    """Stores the wheels for the version's workspace, and returns the lock with them. Raises Unresolvable if
    they are not what was ordered."""
    locked = {package.name: package.version for package in read_lock(draft.lock)}
    locked |= {package.name: package.version for package in draft.packages}
    by_project = {_project_of(wheel): wheel for wheel in wheels}
    rows = []
    for package in draft.packages:
        wheel = by_project.get(package.name)
        if wheel is None:
            raise Unresolvable(f"The node has built no wheel of {package.name}. Build the version again.")
        number = _check_wheel(wheel, package, version.python, locked)
        rows.append(_row(version, package, wheel, number, record))
    with transaction.atomic():
        BuiltWheel.objects.bulk_create(rows)
        return _lock_with(version, draft, rows)


def _find_built(version: EnvironmentVersion, package: PackageBuild) -> BuiltWheel | None:
    rows = BuiltWheel.objects.filter(
        workspace=version.environment.workspace_id, build_key=package.build_key
    ).order_by("-pk")
    # Marked as in use before a row of this version names it.
    return next((row for row in rows if blobs.hold(row.sha256)), None)


def _row(
    version: EnvironmentVersion,
    package: PackageBuild,
    wheel: UploadedWheel,
    number: str,
    record: BuildRecord,
) -> BuiltWheel:
    return BuiltWheel(
        workspace=version.environment.workspace,
        version=version,
        project=package.name,
        project_version=number,
        filename=wheel.filename,
        sha256=wheel.sha256,
        size_bytes=wheel.size_bytes,
        build_key=package.build_key,
        source_sha256=package.sha256,
        node=record.node,
        glibc="" if wheel.filename.endswith(PURE) else record.glibc,
        build=record.build,
        created_by=version.created_by,
    )


def _lock_with(version: EnvironmentVersion, draft: WheelDraft, wheels: Collection[BuiltWheel]) -> str:
    """Records the wheels among the files of the version, and returns its whole lock."""
    version.files.filter(filename__in=[wheel.filename for wheel in wheels], url="").delete()
    LockedFile.objects.bulk_create(
        LockedFile(
            version=version,
            project=wheel.project,
            filename=wheel.filename,
            url="",
            sha256=wheel.sha256,
            size_bytes=wheel.size_bytes,
            is_preferred=True,
            glibc=wheel.glibc,
        )
        for wheel in wheels
    )
    # Drafts of the former release may lack the last end of a line.
    lock = f"{draft.lock}\n" if draft.lock and not draft.lock.endswith("\n") else draft.lock
    origins = {package.name: package.origin for package in draft.packages}
    return lock + "".join(
        write_lock(
            [
                LockedPackage(
                    wheel.project,
                    wheel.project_version,
                    (f"sha256:{wheel.sha256}",),
                    origins[wheel.project],
                    wheel.size_bytes,
                )
            ]
        )
        + f"    # built on {_builder(wheel)} from sha256:{wheel.source_sha256}\n"
        for wheel in wheels
    )


def _builder(wheel: BuiltWheel) -> str:
    return f"{wheel.node} with glibc {wheel.glibc}" if wheel.glibc else wheel.node


def _project_of(wheel: UploadedWheel) -> str:
    try:
        return canonicalize_name(parse_wheel_filename(wheel.filename)[0])
    except InvalidWheelFilename:
        return ""


def _check_wheel(wheel: UploadedWheel, package: PackageBuild, python: str, locked: Mapping[str, str]) -> str:
    """Returns the version of the wheel. Raises Unresolvable if it is another one, or needs what the lock
    lacks."""
    metadata = _read(wheel, python)
    name, version = package.name, str(metadata.version) if package.is_version_built else package.version
    is_same = canonicalize_name(metadata.name) == name and metadata.version == Version(version)
    if not is_same or parse_wheel_filename(wheel.filename)[1] != Version(version):
        raise Unresolvable(f"The source of {name} {version} builds a wheel of another name or version.")
    if not is_usable_wheel(wheel.filename, python):
        raise Unresolvable(
            f"The source of {name} {version} builds {wheel.filename:.100}, which Python {python} on Linux "
            "(x86-64) does not install."
        )
    missing = [str(requirement) for requirement in metadata.needs if _lacks(requirement, locked)]
    if missing:
        raise Unresolvable(
            f"{name} {version} needs {', '.join(missing)}, as only its build shows. Add it to the "
            "requirements."
        )
    return version


def _read(wheel: UploadedWheel, python: str) -> _WheelMetadata:
    data = read_metadata(wheel.sha256)
    if data is None or len(wheel.filename) > MAX_FILENAME:
        raise Unresolvable(f"The node has sent {wheel.filename:.100}, which is no wheel.")
    try:
        metadata = Metadata.from_email(data, validate=False)
        # Each field is checked when it is read.
        needs = tuple(_needed(metadata.requires_dist or (), python))
        return _WheelMetadata(metadata.name, metadata.version, needs)
    except (ExceptionGroup, ValueError) as error:
        raise Unresolvable(f"The metadata of {wheel.filename} cannot be read: {error!s:.200}.") from error


def _needed(requirements: Iterable[Requirement], python: str) -> Iterator[Requirement]:
    environment = marker_values(python) | {"extra": ""}
    for requirement in requirements:
        if requirement.marker is None or requirement.marker.evaluate(environment):
            yield requirement


def _lacks(requirement: Requirement, locked: Mapping[str, str]) -> bool:
    number = locked.get(canonicalize_name(requirement.name))
    try:
        return number is None or not requirement.specifier.contains(Version(number), prereleases=True)
    except InvalidVersion:
        return True
