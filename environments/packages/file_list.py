"""Lists the files that a lock names: wheels, from the form of a lock that has their addresses (PEP 751), and
packages of conda."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

from django.db import transaction
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from environments.conda.conda_lock import CondaLock, CondaPackage
from environments.lock_file import read_lock
from environments.models import EnvironmentVersion, LockedFile
from environments.states import EnvironmentKind

WHEEL = ".whl"
SOURCES = (".tar.gz", ".zip")
# Minor versions of glibc 2: usual nodes have at least the first; no lock needs a newer one than the second.
USUAL_GLIBC, NEWEST_GLIBC, OLDEST_GLIBC = 28, 39, 5
_OLD_NAMES = {17: "manylinux2014_x86_64", 12: "manylinux2010_x86_64", 5: "manylinux1_x86_64"}
MAX_FILES = 5000
MAX_FILENAME = 255


@dataclass(frozen=True)
class PackageAddress:
    """A file of a package on an index: a wheel, or where that is said a source distribution. `project`: the
    normalised name of its package; `size_bytes`: 0 if it is not known."""

    project: str
    filename: str
    url: str
    sha256: str
    size_bytes: int = 0


def read_wheels(text: str) -> tuple[PackageAddress, ...]:
    """Returns the wheels of a pylock.toml. Raises tomllib.TOMLDecodeError for any other text."""
    data = tomllib.loads(text)
    return tuple(
        wheel
        for package in data.get("packages", ())
        for item in package.get("wheels", ())
        for wheel in _read_wheel(canonicalize_name(str(package["name"])), item)
    )


def record_wheels(
    version: EnvironmentVersion, wheels: Collection[PackageAddress], lock: str, python: str
) -> None:
    """Stores those of the wheels that the lock allows and that run on nodes with this minor version of
    Python, in the place of all before."""
    rows = _usable_wheels(version, wheels, lock, python)
    with transaction.atomic():
        LockedFile.objects.filter(version=version, is_conda=False).delete()
        LockedFile.objects.bulk_create([*rows.values()][:MAX_FILES])


def record_build_files(
    version: EnvironmentVersion,
    wheels: Collection[PackageAddress],
    lock: str,
    sources: Collection[PackageAddress],
) -> None:
    """Stores what only a build of the version's packages needs: the wheels of another lock, and the source
    distributions. After `record_wheels`."""
    rows = _usable_wheels(version, wheels, lock, version.python)
    for source in sources:
        rows[source.filename] = unsaved_file(version, source)
        rows[source.filename].is_preferred = True
    present = set(version.files.values_list("filename", flat=True))
    new = [row for name, row in rows.items() if name not in present]
    for row in new:
        row.is_for_build = True
    LockedFile.objects.bulk_create(new[:MAX_FILES])


def is_usable_wheel(filename: str, python: str) -> bool:
    """Returns whether nodes with this minor version of Python install a wheel of this name."""
    return _rank(filename, _tag_ranks(python)) is not None


def _usable_wheels(
    version: EnvironmentVersion, wheels: Collection[PackageAddress], lock: str, python: str
) -> dict[str, LockedFile]:
    """Returns a row, which is not stored yet, for each wheel that the lock allows, by file name."""
    allowed = {package.name: frozenset(package.hashes) for package in read_lock(lock)}
    ranks = _tag_ranks(python)
    rows: dict[str, LockedFile] = {}
    best: dict[str, tuple[int, str]] = {}
    for wheel in wheels:
        rank = _rank(wheel.filename, ranks)
        if rank is None or f"sha256:{wheel.sha256}" not in allowed.get(wheel.project, ()):
            continue
        rows[wheel.filename] = unsaved_file(version, wheel)
        best[wheel.project] = min(best.get(wheel.project, (rank, wheel.filename)), (rank, wheel.filename))
    for _, filename in best.values():
        rows[filename].is_preferred = True
    return rows


def record_conda_packages(version: EnvironmentVersion, packages: Iterable[CondaPackage]) -> None:
    """Stores the packages of conda of a version, in the place of all before."""
    rows = {
        package.file: LockedFile(
            version=version,
            project=package.name,
            filename=package.file,
            url=package.url,
            sha256=package.sha256,
            size_bytes=package.size,
            is_preferred=True,
            is_conda=True,
            glibc=package.glibc,
        )
        for package in packages
        if len(package.file) <= MAX_FILENAME
    }
    with transaction.atomic():
        LockedFile.objects.filter(version=version, is_conda=True).delete()
        LockedFile.objects.bulk_create([*rows.values()][:MAX_FILES])


def unsaved_file(version: EnvironmentVersion, file: PackageAddress) -> LockedFile:
    """Returns a row for the file, which is not stored."""
    return LockedFile(
        version=version,
        project=file.project,
        filename=file.filename,
        url=file.url,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
    )


def has_all_files(version: EnvironmentVersion) -> bool:
    """Returns whether the hub knows a file of every package of the lock. Locks of earlier versions of the hub
    have none."""
    rows = [*version.files.filter(is_for_build=False).values_list("is_conda", "project", "sha256")]
    projects = {project for is_conda, project, _ in rows if not is_conda}
    if version.kind == EnvironmentKind.CONDA:
        lock = CondaLock.from_text(version.lock)
        hashes = {sha256 for is_conda, _, sha256 in rows if is_conda}
        has_conda = hashes >= {package.sha256 for package in lock.packages}
        return bool(hashes) and has_conda and projects >= {item.name for item in read_lock(lock.pip)}
    return bool(projects) and projects >= {package.name for package in read_lock(version.lock)}


def read_sources(text: str) -> dict[str, PackageAddress]:
    """Returns the source distributions of a pylock.toml, by the normalised names of their packages."""
    return {
        source.project: source
        for package in tomllib.loads(text).get("packages", ())
        if "sdist" in package
        for source in _read_file(canonicalize_name(str(package["name"])), package["sdist"], SOURCES)
    }


def _read_wheel(project: str, item: Mapping[str, Any]) -> Iterator[PackageAddress]:
    return _read_file(project, item, (WHEEL,))


def _read_file(project: str, item: Mapping[str, Any], endings: tuple[str, ...]) -> Iterator[PackageAddress]:
    sha256 = str(item.get("hashes", {}).get("sha256", ""))
    parts = urlsplit(str(item.get("url", "")))
    filename = str(item.get("name", "")) or unquote(parts.path.rpartition("/")[2])
    if not sha256 or not parts.scheme or not filename.endswith(endings) or len(filename) > MAX_FILENAME:
        return
    # Without user and password: the hub takes them from its own settings when it fetches the file.
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()
    yield PackageAddress(project, filename, address, sha256, int(item.get("size", 0)))


def _rank(filename: str, ranks: Mapping[Tag, int]) -> int | None:
    """Returns the place of the wheel among those of its package, the best first; None if no node runs it."""
    try:
        tags = parse_wheel_filename(filename)[3]
    except InvalidWheelFilename:
        return None
    return min((ranks[tag] for tag in tags if tag in ranks), default=None)


@cache
def _tag_ranks(python: str) -> Mapping[Tag, int]:
    major, minor = (int(part) for part in python.split("."))
    platforms = [*_platforms(USUAL_GLIBC, OLDEST_GLIBC), "linux_x86_64"]
    platforms += _platforms(NEWEST_GLIBC, USUAL_GLIBC + 1)
    tags = [
        *cpython_tags((major, minor), platforms=platforms),
        *compatible_tags((major, minor), f"cp{major}{minor}", platforms),
    ]
    return {tag: rank for rank, tag in reversed([*enumerate(tags)])}


def _platforms(newest: int, oldest: int) -> Iterator[str]:
    for minor in range(newest, oldest - 1, -1):
        yield f"manylinux_2_{minor}_x86_64"
        if minor in _OLD_NAMES:
            yield _OLD_NAMES[minor]
