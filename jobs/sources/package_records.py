"""The packages that the ranks of an attempt really had, as its nodes have read them from the environments.

A node sends its list like a log. A run may write into that folder, so nothing in the list is trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from environments.kinds.all_kinds import kind_of
from environments.lock_file import LockedPackage, PackageChange, compare_packages
from environments.models import EnvironmentVersion
from environments.states import IMAGE_KINDS
from jobs.logs import log_store
from jobs.models import AttemptNode, Run
from jobs.sources.own_environments import find_version
from trainhub_launch.log_names import PACKAGES_FILE

MAX_BYTES = 4 * 1024 * 1024
MAX_PACKAGES = 5000
MAX_WORD = 200
MAX_NUMBER_DIGITS = 9
INSTALLERS = ("pip", "conda")


@dataclass(frozen=True)
class NodePackages:
    """`node`: its name. `packages`: None if the node has not sent the list (yet); `python`: the version of
    the interpreter as far as its files tell it; `is_complete`: whether the list has all packages."""

    node: str
    packages: tuple[LockedPackage, ...] | None = None
    python: str = ""
    is_complete: bool = True


@dataclass(frozen=True)
class NodeDifference:
    """A package of which not all nodes have the same version. `versions`: by node, "" where it is missing."""

    name: str
    versions: Mapping[str, str]


def read_package_records(run: Run, attempt: int) -> list[NodePackages]:
    """Returns what each node of the attempt has sent, the head first."""
    parts = AttemptNode.objects.filter(attempt__run=run, attempt__number=attempt).order_by("node_rank")
    return [
        _read_record(run.pk, attempt, rank, name)
        for rank, name in parts.values_list("node_rank", "node__name")
    ]


def node_differences(records: Sequence[NodePackages]) -> list[NodeDifference]:
    """Returns the packages that are not the same on all nodes that have sent their lists, by name."""
    versions = {
        record.node: {package.name: package.full_version for package in record.packages}
        for record in records
        if record.packages is not None
    }
    names = sorted({name for packages in versions.values() for name in packages})
    rows = ({node: packages.get(name, "") for node, packages in versions.items()} for name in names)
    return [
        NodeDifference(name, row) for name, row in zip(names, rows, strict=True) if len(set(row.values())) > 1
    ]


def locked_version(run: Run) -> EnvironmentVersion | None:
    """Returns the version of an own environment whose lock the run was to have; None if there is no such
    lock: the lock of an image names no packages."""
    ref = run.spec.get("environment") or {}
    number = str(ref.get("version", ""))
    if not number.isdecimal() or len(number) > MAX_NUMBER_DIGITS:
        return None
    version = find_version(run.workspace, str(ref.get("name", "")), int(number))
    has_packages = version is not None and version.lock and version.kind not in IMAGE_KINDS
    return version if has_packages else None


def lock_differences(version: EnvironmentVersion, record: NodePackages) -> tuple[PackageChange, ...]:
    """Returns what the node has otherwise than the lock says: `before` is the lock's version."""
    return compare_packages(kind_of(version).locked_packages(version.lock), record.packages or ())


def package_versions(run: Run) -> dict[str, str]:
    """Returns name -> version of what the ranks of the latest attempt had on the first node that has sent its
    list."""
    records = read_package_records(run, run.attempt)
    packages = next((record.packages for record in records if record.packages is not None), ())
    return {package.name: package.version for package in packages}


def requirements_text(record: NodePackages) -> str:
    """Returns the list as a requirements file; packages of conda are comments in it."""
    lines = [f"# Installed on node {record.node}"]
    lines += [f"# Python {record.python}"] if record.python else []
    packages = record.packages or ()
    lines += [
        f"# conda: {package.name}={package.version}={package.build}"
        for package in packages
        if package.installer == "conda"
    ]
    lines += [f"{package.name}=={package.version}" for package in packages if package.installer == "pip"]
    return "\n".join([*lines, ""])


def _read_record(run_id: str, attempt: int, node_rank: int, node: str) -> NodePackages:
    name = f"node_{node_rank}/{PACKAGES_FILE}" if node_rank else PACKAGES_FILE
    data = log_store.read(run_id, attempt, name, 0, MAX_BYTES)
    try:
        record = json.loads(data) if data else None
    except (ValueError, RecursionError):
        # Half of it has arrived, or the run has written into the file.
        record = None
    listed = record.get("packages") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(listed, list):
        return NodePackages(node)
    packages = [package for item in listed[:MAX_PACKAGES] if (package := _package(item)) is not None]
    python = record.get("python")
    return NodePackages(
        node,
        tuple(sorted(packages, key=lambda package: package.name)),
        python if isinstance(python, str) and _is_word(python) else "",
        record.get("is_complete") is True,
    )


def _package(item: object) -> LockedPackage | None:
    if not isinstance(item, list) or len(item) != 4 or not all(isinstance(word, str) for word in item):
        return None
    installer, name, version, build = item
    if installer not in INSTALLERS or not (_is_word(name) and _is_word(version)) or len(build) > MAX_WORD:
        return None
    # As in locks: conda's names stay as they are.
    name = canonicalize_name(name) if installer == "pip" else name
    return LockedPackage(name, version, (), installer=installer, build=build)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_WORD and value.isprintable() and " " not in value
