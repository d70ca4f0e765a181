"""Turns a `pylock.toml` (PEP 751) into the lock that nodes install, without resolving anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import InvalidMarker, Marker
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from environments.indexes.index_address import read_index_address
from environments.lock_file import LockedPackage, write_lock
from environments.projects.pyproject import check_python_fits
from trainhub_launch.errors import SpecError

# The newest glibc that nodes are expected to have.
MAX_GLIBC = 39
_OTHER_SOURCES = {
    "vcs": "comes from a repository",
    "directory": "is a folder of the project",
    "archive": "is an archive at an address",
}
_REMEDY = "only packages with a wheel on an index are installed here; name such a release"
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
# Indexes that need no line of their own: the hub and the nodes use one like them anyway.
_MAIN_INDEXES = ("https://pypi.org/simple",)


@dataclass(frozen=True)
class _Wheel:
    sha256: str
    size: int
    rank: int


def lock_from_pylock(data: Mapping[str, Any], python: str, file: str) -> str:
    """Returns the lock for this minor version of Python on Linux (x86-64). `file`: as errors name it. Raises
    ValueError with a sentence."""
    check_python_fits(str(data.get("requires-python", "")), python, file)
    packages = [_package(entry, python, file) for entry in _entries(data) if _applies(entry, python, file)]
    if not packages:
        raise ValueError(f"{file} has no package for Python {python} on Linux (x86-64).")
    seen = [package.name for package in packages]
    twice = next((name for name in seen if seen.count(name) > 1), "")
    if twice:
        raise ValueError(f"{file} has {twice} more than once for Python {python}; lock it again.")
    indexes = dict.fromkeys(package.index for package in packages if package.index)
    lines = [f"--extra-index-url {url}" for url in indexes if url.rstrip("/") not in _MAIN_INDEXES]
    return "\n".join((*lines, write_lock(packages)))


def pylock_pins(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the packages of the file for all platforms, as requirements. Raises SpecError for a file that
    names no package by a version."""
    pins = [
        f"{entry['name']}=={entry['version']}" for entry in _entries(data) if {"name", "version"} <= {*entry}
    ]
    if not pins:
        raise SpecError("pylock", "pylock.toml has no packages with a version; lock the project again")
    return tuple(pins)


def _entries(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = data.get("packages", [])
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _applies(entry: Mapping[str, Any], python: str, file: str) -> bool:
    """Returns whether the package belongs to this Python on Linux, without extras and groups of the lock."""
    marker = entry.get("marker")
    if not marker:
        return True
    try:
        return Marker(str(marker)).evaluate(marker_values(python), context="lock_file")
    except (InvalidMarker, KeyError, TypeError) as error:
        raise ValueError(
            f"{file}: the marker of {entry.get('name')} cannot be read: {marker!s:.100}."
        ) from error


def marker_values(python: str) -> dict[str, Any]:
    """Returns the values of markers for this minor version of Python on Linux (x86-64)."""
    return {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "implementation_name": "cpython",
        "implementation_version": f"{python}.9",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "extras": set(),
        "dependency_groups": set(),
    }


def _package(entry: Mapping[str, Any], python: str, file: str) -> LockedPackage:
    name, version, index = _identity(entry, file)
    for key, words in _OTHER_SOURCES.items():
        if entry.get(key):
            raise ValueError(f"{file}: {name} {words}; {_REMEDY}.")
    ranks = _tag_ranks(python)
    wheels = sorted(_wheels(entry, ranks, name, version, file), key=lambda wheel: wheel.rank)
    if not wheels:
        raise ValueError(
            f"{file}: {name} {version} has no wheel for Python {python} on Linux (x86-64), and packages "
            "of a lock are not built from source. Choose a version that has one, or another Python, and lock "
            "it again, or give requirements with the line --no-binary."
        )
    hashes = tuple(f"sha256:{wheel.sha256}" for wheel in wheels)
    return LockedPackage(name, version, hashes, index, wheels[0].size)


def _identity(entry: Mapping[str, Any], file: str) -> tuple[str, str, str]:
    """Returns name, version and index of a package. What they may contain is checked: they become lines of
    the lock."""
    try:
        name = canonicalize_name(str(entry.get("name", "")), validate=True)
        version = str(Version(str(entry.get("version", ""))))
        index = str(entry.get("index", ""))
        return name, version, read_index_address(index)[0] if index else ""
    except ValueError as error:
        raise ValueError(f"{file}: {entry.get('name')!r:.50} cannot be installed: {error!s:.200}.") from error


def _wheels(
    entry: Mapping[str, Any], ranks: Mapping[Tag, int], name: str, version: str, file: str
) -> Iterable[_Wheel]:
    """Yields those wheels of the package that fit. Raises ValueError for one that is of another package or
    has no hash: nodes would refuse it."""
    for wheel in entry.get("wheels", []):
        filename = str(wheel.get("name", "")) or unquote(
            urlsplit(str(wheel.get("url", ""))).path.rpartition("/")[2]
        )
        try:
            project, number, _, tags = parse_wheel_filename(filename)
        except InvalidWheelFilename:
            continue
        rank = min((ranks[tag] for tag in tags if tag in ranks), default=None)
        if rank is None:
            continue
        if project != name or number != Version(version):
            raise ValueError(f"{file}: {filename:.150} is no wheel of {name} {version}; lock it again.")
        sha256 = wheel.get("hashes", {}).get("sha256")
        if not isinstance(sha256, str) or not _SHA256.match(sha256):
            raise ValueError(f"{file}: {filename:.150} has no SHA-256 of 64 digits there; lock it again.")
        size = wheel.get("size")
        yield _Wheel(sha256, size if isinstance(size, int) else 0, rank)


def _tag_ranks(python: str) -> dict[Tag, int]:
    """Returns the tags of wheels that this Python on Linux (x86-64) installs, the best with the lowest
    number."""
    version = (3, int(python.partition(".")[2]))
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(MAX_GLIBC, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    interpreter = f"cp{version[0]}{version[1]}"
    tags = [
        *cpython_tags(version, platforms=platforms),
        *compatible_tags(version, interpreter=interpreter, platforms=platforms),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}
