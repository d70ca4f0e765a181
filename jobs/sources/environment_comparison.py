"""What the packages of a version can be compared with: other versions, and the curated environments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from environments.catalog import curated_version
from environments.curated import SETS
from environments.images.display import compare_images
from environments.images.image_lock import read_image_lock
from environments.kinds.all_kinds import kind_of
from environments.lock_file import PackageChange, compare_packages
from environments.models import EnvironmentVersion
from environments.states import IMAGE_KINDS
from jobs.sources.own_environments import find_version
from workspaces.models import Workspace

MAX_NUMBER_DIGITS = 9
# Newest versions of other environments that the list offers.
MAX_OTHERS = 50


@dataclass(frozen=True)
class EnvironmentComparison:
    """`choices`: label -> the versions to choose from, as (value, name). `chosen`: the value of the other
    version, "" if none is; `other`: its name; `is_known`: whether its packages are known."""

    choices: Mapping[str, list[tuple[str, str]]]
    chosen: str = ""
    other: str = ""
    is_known: bool = True
    changes: tuple[PackageChange, ...] = ()


def compare(version: EnvironmentVersion, workspace: Workspace, value: str) -> EnvironmentComparison:
    """Returns how the version differs from the one that `value` names: the number of another version of the
    same environment, NAME:NUMBER, or the name of a curated one. Any other value compares with nothing."""
    choices = _choices(version, workspace)
    other = _find(version, workspace, value)
    if other is None or str(other) == str(version):
        return EnvironmentComparison(choices)
    # A curated environment has one version only.
    label = other.environment.name if other.environment.workspace_id is None else str(other)
    changes = _changes(other, version) if other.lock else ()
    return EnvironmentComparison(choices, value, label, bool(other.lock), changes)


def _changes(before: EnvironmentVersion, after: EnvironmentVersion) -> tuple[PackageChange, ...]:
    if {before.kind, after.kind} <= {str(kind) for kind in IMAGE_KINDS}:
        return compare_images(read_image_lock(before.lock), read_image_lock(after.lock))
    old, new = (kind_of(version).locked_packages(version.lock) for version in (before, after))
    return compare_packages(old, new)


def _find(version: EnvironmentVersion, workspace: Workspace, value: str) -> EnvironmentVersion | None:
    name, _, number = value.rpartition(":")
    if number.isdecimal() and len(number) <= MAX_NUMBER_DIGITS:
        return find_version(workspace, name or version.environment.name, int(number))
    return curated_version(value)


def _choices(version: EnvironmentVersion, workspace: Workspace) -> dict[str, list[tuple[str, str]]]:
    name = version.environment.name
    rows = EnvironmentVersion.objects.filter(environment__workspace=workspace, environment__deleted_at=None)
    own = rows.filter(environment__name=name).exclude(pk=version.pk).values_list("number", flat=True)
    newest: dict[str, int] = {}
    others = rows.exclude(environment__name=name).exclude(lock="").order_by("environment__name", "-number")
    for other_name, number in others.values_list("environment__name", "number"):
        newest.setdefault(other_name, number)
    choices = {
        "Other versions": [(str(number), f"version {number}") for number in own],
        "Other environments": [
            (f"{key}:{newest[key]}", f"{key} {newest[key]}") for key in [*newest][:MAX_OTHERS]
        ],
        "Curated": [
            (item.spec.name, item.spec.name) for item in SETS if item.lock and item.spec.name != name
        ],
    }
    return {label: items for label, items in choices.items() if items}
