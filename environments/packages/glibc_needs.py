"""Which glibc the wheels and packages of conda of a lock need of a node. The name of a wheel says that,
unless a node has built it: then it needs one as new as its builder's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from django.db.models import Q
from packaging.utils import canonicalize_name

from clusters.visibility import visible_nodes
from environments.models import LockedFile
from trainhub_launch.scheduler.capabilities import glibc_need, installed_glibc
from workspaces.models import Workspace

MINOR = re.compile(r"2\.(\d{1,3})\b")
TAG = re.compile(r"manylinux_2_(\d+)_")
# Every node has these: Python itself needs them.
OLD_TAGS = ("manylinux1_", "manylinux2010_", "manylinux2014_")
USUAL_MINOR = 17
_VERSION = re.compile(r"\d{1,3}(\.\d{1,4}){1,3}\Z")


def glibc_capabilities(versions: Collection[int]) -> dict[int, frozenset[str]]:
    """Returns, by version, the capability that its lock needs of nodes because of glibc, if it needs a newer
    one than every node has. Two queries at most, however many versions there are."""
    newer = LockedFile.objects.filter(version__in=versions, is_preferred=True, is_for_build=False)
    newer = newer.filter(
        Q(filename__contains="manylinux_2_2") | Q(filename__contains="manylinux_2_3") | ~Q(glibc="")
    )
    needs: dict[int, list[tuple[list[int], str, bool]]] = defaultdict(list)
    projects = set()
    fields = ("version_id", "project", "filename", "glibc", "is_conda")
    for version, project, filename, glibc, is_conda in newer.values_list(*fields):
        if is_conda:
            needs[version].append((_numbers(glibc), _title(filename, is_conda=True), False))
        else:
            projects.add((version, project))
    for version, (minor, filename, glibc) in _wheel_needs(projects):
        needs[version].append(([2, minor], _title(filename, is_conda=False), bool(glibc)))
    capabilities = {}
    for version, items in needs.items():
        numbers, title, is_built = max(items)
        need = glibc_need(".".join(map(str, numbers)), title, is_built=is_built)
        capabilities[version] = frozenset({need})
    return capabilities


def oldest_glibc(workspace: Workspace | None) -> str:
    """Returns the oldest glibc that a node of the workspace reports, "" if none reports one."""
    if workspace is None:
        return ""
    nodes = visible_nodes(workspace).filter(revoked_at=None, removed_at=None)
    reported = (installed_glibc(text.split()) for text in nodes.values_list("capabilities", flat=True))
    return min(filter(_VERSION.match, reported), key=_numbers, default="")


def _wheel_needs(projects: Collection[tuple[int, str]]) -> Iterator[tuple[int, tuple[int, str, str]]]:
    """Yields, for each version and package, the wheel that needs the oldest glibc, as its minor version, name
    and the glibc of the node that has built it, if not every node has that."""
    if not projects:
        return
    least: dict[tuple[int, str], tuple[int, str, str]] = {}
    locks, names = {lock for lock, _ in projects}, {name for _, name in projects}
    rows = LockedFile.objects.filter(version__in=locks, project__in=names, is_for_build=False)
    for version, project, filename, glibc in rows.values_list("version_id", "project", "filename", "glibc"):
        need = _minor_of_builder(glibc) if glibc else _minor_of_glibc(filename), filename, glibc
        least[version, project] = min(least.get((version, project), need), need)
    for (version, _), need in least.items():
        if need[0] > USUAL_MINOR:
            yield version, need


def _title(filename: str, *, is_conda: bool) -> str:
    """Returns name and version of the package of the file."""
    if is_conda:
        name, version, _ = filename.rsplit("-", 2)
        return f"{name} {version}"
    name, version = filename.split("-")[:2]
    return f"{canonicalize_name(name)} {version}"


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _minor_of_builder(glibc: str) -> int:
    """Returns the 36 of 2.36; 0 for what is no version of glibc 2."""
    match = MINOR.match(glibc)
    return int(match[1]) if match else 0


def _minor_of_glibc(filename: str) -> int:
    """Returns the 39 of glibc 2.39, 0 for a wheel that needs no newer one than every node has."""
    platforms = filename.removesuffix(".whl").rpartition("-")[2]
    if not TAG.search(platforms) or any(tag in platforms for tag in OLD_TAGS):
        return 0
    return min(int(minor) for minor in TAG.findall(platforms))
