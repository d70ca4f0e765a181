"""The packages that an environment contains, as far as the hub knows them: from the lock of an own one, or
from the list that was resolved for a curated one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from environments.catalog import SYSTEM, own_version
from environments.curated import BY_NAME
from environments.kinds.all_kinds import kind_of
from environments.states import EnvironmentKind
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import EnvironmentRef
from workspaces.models import Workspace

# Made by .ci/curated-packages.
FOLDER = Path(__file__).parent / "curated_packages"
# Every environment may have them besides: virtual environments bring some, others come with Python itself.
SEEDED = frozenset({"pip", "setuptools", "wheel"})
_FIRST_LINE = "# Python "


@dataclass(frozen=True)
class PackageSet:
    """`name`: as sentences name the environment ("mine 2"). `versions`: by normalised name. `python`: the
    minor version that it has. `source`: the requirements of an own one as they were given, "" for a curated
    one."""

    name: str
    python: str
    versions: Mapping[str, str]
    source: str = ""

    def has_any(self, *names: str) -> bool:
        return any(name in self.versions for name in names)


def packages_of_environment(ref: EnvironmentRef, workspace: Workspace, python: str) -> PackageSet | None:
    """Returns the packages of the environment; None if they are not known, as those of an interpreter of a
    node. `python`: the version of Python with which the nodes make curated environments, "" = unknown."""
    if ref.name == SYSTEM:
        return None
    if ref.name in BY_NAME:
        version = BY_NAME[ref.name].spec.version
        return _curated(ref.name, version, python) if ref.version in ("", version) and python else None
    try:
        own = own_version(ref, workspace)
    except SpecError:
        return None
    # The names of conda's packages are others, and an image may contain anything.
    if own.kind != EnvironmentKind.PIP:
        return None
    locked = {package.name: package.version for package in kind_of(own).locked_packages(own.lock)}
    return PackageSet(str(own), own.python, locked, own.source)


@cache
def _curated(name: str, version: str, python: str) -> PackageSet | None:
    """Returns the packages of a curated environment for Python of this version ("3.11.7"); None if the list
    does not hold for it."""
    path = FOLDER / f"{name}.{version}.txt"
    if not path.is_file():
        return None
    first, *lines = path.read_text().splitlines()
    minor = tuple(int(part) for part in python.split(".")[:2])
    since = tuple(int(part) for part in first.removeprefix(_FIRST_LINE).split(" ")[0].split("."))
    if minor < since:
        return None
    short = ".".join(python.split(".")[:2])
    variables = {
        "python_version": short,
        "python_full_version": python if python.count(".") == 2 else f"{short}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
    }
    versions: dict[str, str] = {}
    for line in lines:
        if "==" not in line:
            continue
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(variables):
            versions[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return PackageSet(name, short, versions)
