"""Finds a workspace's own environments and what nodes and runs have to do with them."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Prefetch, QuerySet

from clusters.visibility import clusters_of
from environments.curated import CURATED, matches
from environments.kinds.all_kinds import kind_of
from environments.models import Environment, EnvironmentVersion
from environments.states import EnvironmentKind
from jobs.models import PreparedEnvironment, Run
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
    """An environment and its newest version, as lists show them."""

    environment: Environment
    newest: EnvironmentVersion

    @property
    def packages(self) -> tuple[str, ...]:
        return packages_of(self.newest)


def packages_of(version: EnvironmentVersion) -> tuple[str, ...]:
    """Returns what the source of the version asks for, such as requirements without comments and hashes."""
    return kind_of(version).named_packages(version.source)


def own_environments(workspace: Workspace, text: str = "") -> list[OwnRow]:
    """Returns the workspace's environments in whose name or packages each word of the text begins a
    word, by name."""
    versions = EnvironmentVersion.objects.select_related("created_by").defer("lock").order_by("-number")
    environments = Environment.objects.filter(workspace=workspace).prefetch_related(
        Prefetch("versions", versions)
    )
    rows = [OwnRow(item, item.versions.all()[0]) for item in environments if item.versions.all()]
    return [row for row in rows if matches(text, row.environment.name, *row.packages)]


def find_environment(workspace: Workspace, name: str) -> Environment | None:
    if "\x00" in name:
        # PostgreSQL stores no such text, and refuses to compare with it.
        return None
    return Environment.objects.select_related("created_by").filter(workspace=workspace, name=name).first()


def find_version(workspace: Workspace, name: str, number: int) -> EnvironmentVersion | None:
    if "\x00" in name or number > 2**31 - 1:
        return None
    versions = EnvironmentVersion.objects.select_related("environment", "created_by")
    return versions.filter(environment__workspace=workspace, environment__name=name, number=number).first()


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


def prepared_nodes(version: EnvironmentVersion, workspace: Workspace) -> QuerySet[PreparedEnvironment]:
    """Returns the nodes that have prepared the version, as far as the workspace sees them, by name."""
    return (
        PreparedEnvironment.objects.filter(
            own_version=version, node__cluster__in=clusters_of(workspace), node__revoked_at=None
        )
        .select_related("node__cluster")
        .order_by("node__name")
    )


def runs_of(version: EnvironmentVersion, workspace: Workspace) -> QuerySet[Run]:
    """Returns the workspace's newest runs with the version."""
    runs = Run.objects.for_workspace(workspace).listed()
    runs = runs.filter(
        spec__environment__name=version.environment.name, spec__environment__version=str(version.number)
    )
    return runs.select_related("experiment").defer("preview").order_by("-number")[:MAX_RUNS]
