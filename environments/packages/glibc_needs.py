"""Which glibc the wheels and packages of conda of a lock need of a node. The name of a wheel says that,
unless a node has built it: then it needs one as new as its builder's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from django.db.models import Q
from packaging.version import Version

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
    needs: dict[int, list[tuple[Version, str, bool]]] = defaultdict(list)
    projects = set()
    fields = ("version_id", "project", "filename", "glibc", "is_conda")
    for version, project, filename, glibc, is_conda in newer.values_list(*fields):
        if not is_conda:
            projects.add((version, project))
        elif glibc:
            needs[version].append((Version(glibc), _title(project, filename), False))
    for version, project, (minor, filename, glibc) in _wheel_needs(projects):
        needs[version].append((Version(f"2.{minor}"), _title(project, filename), bool(glibc)))
    newest = {version: max(items) for version, items in needs.items()}
    return {
        version: frozenset({glibc_need(str(glibc), title, is_built=is_built)})
        for version, (glibc, title, is_built) in newest.items()
    }


def oldest_glibc(workspace: Workspace | None) -> str:
    """Returns the oldest glibc that a node of the workspace reports, "" if none reports one."""
    if workspace is None:
        return ""
    nodes = visible_nodes(workspace).filter(revoked_at=None, removed_at=None)
    reported = (installed_glibc(text.split()) for text in nodes.values_list("capabilities", flat=True))
    return min(filter(_VERSION.match, reported), key=Version, default="")


def _wheel_needs(projects: Collection[tuple[int, str]]) -> Iterator[tuple[int, str, tuple[int, str, str]]]:
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
    for (version, project), need in least.items():
        if need[0] > USUAL_MINOR:
            yield version, project, need


def _title(project: str, filename: str) -> str:
    """Returns name and version of the package of a wheel, or of a file of conda, whose names are alike but
    for dashes in the package's."""
    rest = filename.removeprefix(project) if filename.startswith(f"{project}-") else filename
    return f"{project} {rest.split('-')[1]}" if "-" in rest else project


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
