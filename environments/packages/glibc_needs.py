"""Which glibc the wheels of a lock need of a node. The name of a wheel says that, unless a node has built it:
then it needs one as new as its builder's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

from django.db.models import Q

from environments.models import LockedFile
from trainhub_launch.scheduler.capabilities import glibc_need

MINOR = re.compile(r"2\.(\d{1,3})\b")
TAG = re.compile(r"manylinux_2_(\d+)_")
# Every node has these: Python itself needs them.
OLD_TAGS = ("manylinux1_", "manylinux2010_", "manylinux2014_")
USUAL_MINOR = 17


def glibc_capabilities(versions: Collection[int]) -> dict[int, frozenset[str]]:
    """Returns, by version, the capability that its lock needs of nodes because of glibc, if it needs a newer
    one than every node has. Two queries at most, however many versions there are."""
    newer = LockedFile.objects.filter(version__in=versions, is_preferred=True, is_for_build=False)
    is_newer = Q(filename__contains="manylinux_2_2") | Q(filename__contains="manylinux_2_3")
    newer = newer.filter(is_newer | ~Q(glibc=""))
    projects = set(newer.values_list("version_id", "project"))
    if not projects:
        return {}
    least: dict[tuple[int, str], tuple[int, str, str]] = {}
    locks, names = {lock for lock, _ in projects}, {name for _, name in projects}
    rows = LockedFile.objects.filter(version__in=locks, project__in=names, is_for_build=False)
    for version, project, filename, glibc in rows.values_list("version_id", "project", "filename", "glibc"):
        need = _minor_of_builder(glibc) if glibc else _minor_of_glibc(filename), filename, glibc
        least[version, project] = min(least.get((version, project), need), need)
    needs: dict[int, list[tuple[int, str, bool]]] = defaultdict(list)
    for (version, project), (minor, filename, glibc) in least.items():
        if minor > USUAL_MINOR:
            needs[version].append((minor, f"{project} {filename.split('-')[1]}", bool(glibc)))
    return {
        version: frozenset({glibc_need(f"2.{minor}", package, is_built=is_built)})
        for version, found in needs.items()
        for minor, package, is_built in [max(found)]
    }


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
