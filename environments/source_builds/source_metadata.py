"""Reads what a source distribution says about itself without a build (PEP 517, 621 and 643). The archive is
foreign: only two small files of it are read, and nothing is unpacked."""

from __future__ import annotations

import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.metadata import RawMetadata, parse_email
from packaging.requirements import InvalidRequirement, Requirement

MAX_FILE_BYTES = 1024 * 1024
# Of one archive. The files that are read stand near its beginning or end.
MAX_ENTRIES = 50_000
MAX_UNPACKED_BYTES = 2**30
STATIC_SINCE = (2, 2)
# What PEP 517 names for sources without a [build-system].
USUAL_BUILD_REQUIREMENTS = ("setuptools>=40.8", "wheel")
PKG_INFO, PYPROJECT = "PKG-INFO", "pyproject.toml"
DEPENDENCY_FIELDS = {"requires-dist", "provides-extra"}
PROJECT_FIELDS = {"dependencies", "optional-dependencies"}


class UnreadableSource(Exception):
    """The archive does not say what a build needs; the message is a phrase that says why."""


@dataclass(frozen=True)
class SourceMetadata:
    """`dependencies`, `extras`: of the package. `build_requirements`: what its build backend needs. `name`,
    `version`, `requires_python`: as its pyproject.toml has them, "" where it leaves them to the build."""

    dependencies: tuple[str, ...]
    extras: tuple[str, ...]
    build_requirements: tuple[str, ...]
    name: str = ""
    version: str = ""
    requires_python: str = ""


def read_source_metadata(path: Path, filename: str) -> SourceMetadata:
    """Raises UnreadableSource."""
    try:
        texts = _read_archive(path, filename)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, NotImplementedError) as error:
        raise UnreadableSource(f"{filename} is not a source distribution that can be read") from error
    project = _read_pyproject(texts.get(PYPROJECT, ""), filename)
    try:
        dependencies, extras = _dependencies(texts.get(PKG_INFO, ""), project)
    except InvalidRequirement as error:
        raise UnreadableSource(f"the dependencies in {filename} cannot be read: {error!s:.200}") from error
    requires = project.get("build-system", {}).get("requires")
    build = tuple(_strings(requires)) if requires is not None else USUAL_BUILD_REQUIREMENTS
    if any(_name(item) == "setuptools" for item in build):
        # Without isolation nothing installs it later, and setuptools before 70.1 needs it.
        build = tuple(dict.fromkeys((*build, "wheel")))
    for text in (*dependencies, *build):
        _check(text, filename)
    table = project.get("project", {})
    static = (str(table.get(key) or "") for key in ("name", "version", "requires-python"))
    return SourceMetadata(dependencies, extras, build, *static)


def _dependencies(pkg_info: str, project: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns dependencies and extras. Where only a build would show them, what the archive happens to list:
    whether that was all is checked with the built wheel."""
    raw: RawMetadata = parse_email(pkg_info)[0]
    listed = tuple(raw.get("requires_dist", ())), tuple(raw.get("provides_extra", ()))
    table = project.get("project", {})
    is_static = _metadata_version(raw) >= STATIC_SINCE and not DEPENDENCY_FIELDS & _lower(raw.get("dynamic"))
    if is_static or not table or PROJECT_FIELDS & _lower(table.get("dynamic")):
        return listed
    return _of_project(table)


def _metadata_version(raw: RawMetadata) -> tuple[int, ...]:
    numbers = raw.get("metadata_version", "").split(".")
    return tuple(int(number) for number in numbers) if all(map(str.isdecimal, numbers)) else (0,)


def _lower(names: object) -> set[str]:
    return {name.lower() for name in _strings(names)}


def _of_project(table: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    lines = _strings(table.get("dependencies"))
    optional = table.get("optional-dependencies")
    extras = optional if isinstance(optional, Mapping) else {}
    for extra, items in extras.items():
        for requirement in map(Requirement, _strings(items)):
            condition = f'extra == "{extra}"'
            marker = f"({requirement.marker}) and {condition}" if requirement.marker else condition
            requirement.marker = None
            lines.append(f"{requirement}; {marker}")
    return tuple(lines), tuple(extras)


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _read_pyproject(text: str, filename: str) -> Mapping[str, Any]:
    """Returns the tables that matter."""
    try:
        data = tomllib.loads(text)
        return {name: data[name] for name in ("project", "build-system") if isinstance(data.get(name), dict)}
    except tomllib.TOMLDecodeError as error:
        raise UnreadableSource(f"the pyproject.toml in {filename} cannot be read: {error}") from error


def _name(text: str) -> str:
    try:
        return Requirement(text).name.lower()
    except InvalidRequirement:
        return ""


def _check(text: str, filename: str) -> None:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise UnreadableSource(f"{filename} needs {text!r:.100}, which is no requirement") from error
    if requirement.url:
        raise UnreadableSource(f"{filename} needs {text!r:.100}, and only packages of an index are installed")


def _read_archive(path: Path, filename: str) -> dict[str, str]:
    """Returns the texts of the two files in the archive's only top folder, by name."""
    if filename.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            items = [item for item in archive.infolist()[:MAX_ENTRIES] if _is_wanted(item.filename)]
            return {
                item.filename.rpartition("/")[2]: archive.read(item).decode(errors="replace")
                for item in items
                if item.file_size <= MAX_FILE_BYTES
            }
    texts: dict[str, str] = {}
    unpacked = 0
    with tarfile.open(path, "r|gz") as tar:
        for number, member in enumerate(tar):
            unpacked += member.size
            is_too_large = number > MAX_ENTRIES or unpacked > MAX_UNPACKED_BYTES
            if is_too_large or texts.keys() == {PKG_INFO, PYPROJECT}:
                break
            if member.isfile() and _is_wanted(member.name) and member.size <= MAX_FILE_BYTES:
                file = tar.extractfile(member)
                data = file.read() if file is not None else b""
                texts[member.name.rpartition("/")[2]] = data.decode(errors="replace")
    return texts


def _is_wanted(name: str) -> bool:
    return name.removeprefix("./").count("/") == 1 and name.rpartition("/")[2] in (PKG_INFO, PYPROJECT)
