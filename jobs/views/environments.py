"""The list of environments in which runs can be started, and the page of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from clusters.models import Node
from clusters.visibility import visible_nodes
from environments.catalog import SYSTEM, curated_version, environment_names
from environments.curated import CURATED, matching, needs_of, succession_notice
from environments.kinds.all_kinds import kind_of
from environments.lifecycle import may_delete
from environments.lock_file import read_lock
from environments.models import Environment, EnvironmentVersion
from jobs.builds.build_targets import BuildTarget
from jobs.builds.node_choices import nodes_context
from jobs.builds.node_environments import node_environments
from jobs.models import Run
from jobs.sources.environment_comparison import compare
from jobs.sources.first_use import first_uses
from jobs.sources.installed_packages import normalized_name
from jobs.sources.own_environments import find_environment, own_environments
from jobs.version_builds.making_display import making_context
from jobs.views.partials import render_part, wants_part
from jobs.wizard.environment_form import write_environment
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.scheduler.rejections import natural
from trainhub_launch.spec import EnvironmentRef
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MAX_RUNS = 8
MAX_TEXT_LENGTH = 200


@dataclass(frozen=True)
class InterpreterRow:
    """An interpreter and the names of the nodes that report it."""

    version: str
    path: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class PackageRow:
    """A package of an environment. `requested`: the condition on its version, "" for none. `locked`: the
    version in the lock, "" without one."""

    name: str
    requested: str
    locked: str


@require_safe
@needs(Role.VIEWER)
def environments(request: WorkspaceRequest) -> HttpResponse:
    """Lists the workspace's own environments, the curated ones and the interpreters that visible nodes
    report. `q`: only those whose name, packages, version or path contain every word of it."""
    workspace = request.principal.workspace
    text = request.GET.get("q", "").strip()[:MAX_TEXT_LENGTH]
    costs = first_uses(workspace)
    context = {
        "text": text,
        "own": own_environments(workspace, text),
        "may_act": request.principal.may(Role.CONTRIBUTOR),
        "curated": [(item, costs[item.name], succession_notice(item.name)) for item in matching(text)],
        "interpreters": [
            row
            for row in _interpreters(workspace)
            if all(word in f"python {row.version} {row.path}".lower() for word in text.lower().split())
        ],
    }
    return render_part(request, "jobs/environments.html", "jobs/_environments.html", context)


@require_safe
@needs(Role.VIEWER)
def environment(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Shows one environment; for the nodes' own Python, `version` chooses an interpreter by its path."""
    workspace = request.principal.workspace
    own = find_environment(workspace, name)
    if own is not None:
        return _own_page(request, own)
    names = environment_names(workspace)
    if name not in names:
        raise Http404(f"There is no environment {name!r}; there are {', '.join(names)}.")
    version = request.GET.get("version", "").replace("\x00", "") if name == SYSTEM else ""
    ref = EnvironmentRef(name, version)
    other = request.GET.get("with", "")
    of_kind = (
        _system_context(workspace, version) if name == SYSTEM else _curated_context(workspace, name, other)
    )
    words = urlencode({"filter": f'environment = "{name}"'})
    context = {
        "name": name,
        "notice": succession_notice(name),
        "value": write_environment(ref),
        "runs": _latest_runs(workspace, ref),
        "all_runs_url": f"{reverse('runs')}?{words}",
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    response = render_part(
        request, "jobs/environment.html", "environments/_curated_state.html", context | of_kind
    )
    curated = of_kind.get("curated")
    if wants_part(request) and isinstance(curated, EnvironmentVersion) and curated.is_settled:
        # The page polled for this: its other parts change, too.
        response["HX-Refresh"] = "true"
    return response


def _own_page(request: WorkspaceRequest, environment: Environment) -> HttpResponse:
    workspace = request.principal.workspace
    ref = EnvironmentRef(environment.name)
    words = urlencode({"filter": f'environment = "{environment.name}"'})
    context = {
        "environment": environment,
        "versions": environment.versions.select_related("created_by"),
        "value": environment.name,
        "runs": _latest_runs(workspace, ref),
        "all_runs_url": f"{reverse('runs')}?{words}",
        "may_act": request.principal.may(Role.CONTRIBUTOR) and environment.deleted_at is None,
        "may_delete": may_delete(request.principal, environment),
    }
    return render_part(request, "environments/environment.html", "environments/_versions.html", context)


def _system_context(workspace: Workspace, version: str) -> dict[str, object]:
    rows = _interpreters(workspace)
    if not version:
        return {"title": "The node's own Python", "interpreters": rows}
    rows = [row for row in rows if row.path == version]
    if not rows:
        raise Http404(f"No node reports an interpreter {version!r}.")
    return {"title": f"Python {rows[0].version}", "path": version, "interpreters": rows}


def _curated_context(workspace: Workspace, name: str, other: str) -> dict[str, object]:
    """`other`: the value of what to compare the packages with."""
    row = curated_version(name)
    item = next(item for item in CURATED if item.name == name)
    on_nodes = node_environments(workspace, item.name, item.version, None)
    locked = {} if row is None else {package.name: package.version for package in read_lock(row.lock)}
    requested = _requested(item)
    return {
        "title": item.name,
        "version": item.version,
        "use": first_uses(workspace)[name],
        "needs_of": needs_of(item),
        "files": [*kind_of(row).version_files(row)] if row is not None else [],
        **_curated_state(row),
        "comparison": compare(row, workspace, other) if row is not None and row.lock else None,
        "packages": [
            PackageRow(package, condition, locked.get(_without_extras(package), ""))
            for package, condition in requested
        ],
        "others": _others(locked, requested),
        **nodes_context(BuildTarget(item, None), on_nodes),
    }


def _curated_state(row: EnvironmentVersion | None) -> dict[str, object]:
    """Returns how far this hub is with the curated environment, if anybody has needed it."""
    if row is None or row.pk is None:
        return {}
    return {"curated": row, **making_context(row)}


def _requested(item: EnvironmentSpec) -> list[tuple[str, str]]:
    """Returns (package, condition on its version) of the environment's requirements."""
    return [(name, condition) for name, _, condition in (text.partition("==") for text in item.requirements)]


def _without_extras(package: str) -> str:
    return normalized_name(package.partition("[")[0])


def _others(locked: Mapping[str, str], requested: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns (name, version) of the locked packages that were not requested."""
    names = {_without_extras(package) for package, _ in requested}
    return sorted((name, version) for name, version in locked.items() if name not in names)


def _latest_runs(workspace: Workspace, ref: EnvironmentRef) -> QuerySet[Run]:
    """Returns the workspace's newest runs with the environment; without a version those with any version."""
    runs = Run.objects.for_workspace(workspace).listed().filter(spec__environment__name=ref.name)
    if ref.version:
        runs = runs.filter(spec__environment__version=ref.version)
    return runs.select_related("experiment").defer("preview").order_by("-number")[:MAX_RUNS]


def _interpreters(workspace: Workspace) -> list[InterpreterRow]:
    """Returns the interpreters of the workspace's nodes, the newest version first."""
    nodes: dict[tuple[str, str], list[str]] = {}
    reporting: QuerySet[Node] = visible_nodes(workspace).filter(revoked_at=None)
    for node in reporting:
        for item in node.interpreters:
            nodes.setdefault((item["version"], item["path"]), []).append(node.name)
    newest_first = sorted(nodes, key=lambda item: (natural(item[0]), item[1]), reverse=True)
    return [InterpreterRow(version, path, tuple(nodes[version, path])) for version, path in newest_first]
