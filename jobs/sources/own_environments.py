"""Finds a workspace's own environments and what nodes and runs have to do with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Prefetch, QuerySet

from environments.catalog import find_version as find_version  # noqa: PLC0414  # exported
from environments.curated import CURATED, matches
from environments.kinds.all_kinds import kind_of
from environments.models import Environment, EnvironmentVersion
from environments.states import EnvironmentKind
from environments.succession import outdated_notice
from jobs.models import Run
from workspaces.models import Workspace

MAX_RUNS = 8


@dataclass(frozen=True)
class CloneSource:
    """The source of an environment, and its Python, "" for that of most nodes."""

    kind: str
    source: str
    python: str = ""


@dataclass(frozen=True)
class OwnRow:
    """An environment and its newest version, as lists show them. `last_used_at`: when a node last prepared
    one of its versions for a run, None if none has."""

    environment: Environment
    newest: EnvironmentVersion
    last_used_at: datetime | None = None

    @property
    def packages(self) -> tuple[str, ...]:
        return packages_of(self.newest)

    @property
    def usable(self) -> EnvironmentVersion | None:
        """Returns the version that a run gets that names none: the newest locked one that is not outdated, or
        the newest locked one; None if none is locked."""
        locked = [version for version in self.environment.versions.all() if version.is_locked]
        return next((version for version in locked if not version.outdated), locked[0] if locked else None)

    @property
    def notice(self) -> str:
        return outdated_notice(self.usable or self.newest)


def packages_of(version: EnvironmentVersion) -> tuple[str, ...]:
    """Returns what the source of the version asks for, such as requirements without comments and hashes."""
    return kind_of(version).named_packages(version.source)


def own_environments(workspace: Workspace, text: str = "") -> list[OwnRow]:
    """Returns the workspace's environments in whose name or packages each word of the text begins a
    word, the one that was used or changed last first."""
    versions = (
        EnvironmentVersion.objects.select_related("created_by", "environment")
        .defer("lock", "source")
        .order_by("-number")
    )
    environments = (
        Environment.objects.filter(workspace=workspace, deleted_at=None)
        .annotate(last_used_at=Max("versions__prepared__prepared_at"))
        .prefetch_related(Prefetch("versions", versions))
    )
    rows = [
        OwnRow(item, item.versions.all()[0], item.last_used_at)
        for item in environments
        if item.versions.all()
    ]
    _add_sources(rows)
    rows.sort(key=lambda row: row.environment.name)
    rows.sort(
        key=lambda row: max(row.newest.created_at, row.last_used_at or row.newest.created_at), reverse=True
    )
    return [row for row in rows if matches(text, row.environment.name, *row.packages)]


def _add_sources(rows: Iterable[OwnRow]) -> None:
    """Reads the sources of those versions whose packages are shown: a source may be large."""
    shown = {version.pk: version for row in rows for version in (row.newest, row.usable) if version}
    for pk, source in EnvironmentVersion.objects.filter(pk__in=shown).values_list("pk", "source"):
        shown[pk].source = source


def find_environment(workspace: Workspace, name: str) -> Environment | None:
    if "\x00" in name:
        # PostgreSQL stores no such text, and refuses to compare with it.
        return None
    return Environment.objects.select_related("created_by").filter(workspace=workspace, name=name).first()


def clone_source(workspace: Workspace, name: str, number: int | None = None) -> CloneSource | None:
    """Returns the source of a curated environment, or of a version of an own one, by default its newest; None
    if there is none."""
    for item in CURATED:
        if item.name == name:
            return CloneSource(EnvironmentKind.PIP, "\n".join(item.requirements))
    environment = find_environment(workspace, name)
    chosen = environment.last_version if environment is not None and number is None else number
    version = None if chosen is None else find_version(workspace, name, chosen)
    return None if version is None else CloneSource(version.kind, version.source, version.python)


def runs_of(version: EnvironmentVersion, workspace: Workspace) -> QuerySet[Run]:
    """Returns the workspace's newest runs with the version."""
    runs = Run.objects.for_workspace(workspace).listed()
    runs = runs.filter(
        spec__environment__name=version.environment.name, spec__environment__version=str(version.number)
    )
    return runs.select_related("experiment").defer("preview").order_by("-number")[:MAX_RUNS]
