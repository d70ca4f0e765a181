"""The pages of a workspace's own environments and their versions."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from clusters.visibility import visible_nodes
from environments import changes
from environments.catalog import curated_version
from environments.curated import SETS
from environments.dockerfiles.written import FIELDS as PACKAGE_FIELDS
from environments.images.image_lock import ImageLock, read_image_lock
from environments.kinds.all_kinds import KINDS, kind_of
from environments.models import EnvironmentVersion
from environments.node_pythons import PYTHON, default_python
from environments.states import IMAGE_KINDS, EnvironmentKind, VersionState
from environments.succession import outdated_notice
from jobs.builds.build_targets import BuildTarget
from jobs.builds.node_choices import nodes_context
from jobs.builds.node_environments import node_environments_of
from jobs.environment_pages.hub_files import files_context
from jobs.environment_pages.kind_forms import KIND_FORMS
from jobs.environment_pages.prefill import prefill
from jobs.environment_pages.version_form import VersionForm, fill_dockerfile, read_form
from jobs.sources.environment_comparison import compare
from jobs.sources.own_environments import (
    CloneSource,
    clone_source,
    find_environment,
    find_version,
    runs_of,
)
from jobs.version_builds.making_display import making_context
from jobs.views.partials import render_part, wants_part
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.secrets import store
from workspaces.states import Role

MAX_NUMBER_DIGITS = 9


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Role.CONTRIBUTOR)
def new(request: WorkspaceRequest) -> HttpResponse:
    """The form for an environment of the kind that `kind` names, by default from requirements; filled in with
    what the address proposes."""
    kind = request.GET.get("kind", EnvironmentKind.PIP)
    if kind not in KIND_FORMS:
        raise Http404(f"There is no kind of environment {kind!r}.")
    workspace = request.principal.workspace
    form = VersionForm(kind=kind, python=default_python(workspace))
    return _form(request, prefill(request, form, workspace), "")


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Role.CONTRIBUTOR)
def edit(request: WorkspaceRequest, name: str) -> HttpResponse:
    """The form for the next version, filled in with the one that `from` names, by default the newest,
    and with the changes that the address proposes."""
    environment = find_environment(request.principal.workspace, name)
    if environment is None or environment.deleted_at is not None:
        raise Http404(f"There is no environment {name!r} of this workspace.")
    number = _number(request.GET.get("from", "")) or environment.last_version
    source = clone_source(request.principal.workspace, name, number) or CloneSource(EnvironmentKind.PIP, "")
    form = VersionForm(name, source.kind, source.python, source.source)
    return _form(request, prefill(request, form, request.principal.workspace), name)


def _form(request: WorkspaceRequest, form: VersionForm, name: str) -> HttpResponse:
    """`name`: that of an existing environment, "" for a new one."""
    if request.method == "POST":
        form = read_form(request, name, form.kind)
        is_written = form.kind == EnvironmentKind.DOCKERFILE and "write" in request.POST
        if is_written:
            form = fill_dockerfile(request, form)
        elif not form.error_field:
            try:
                version = changes.create_version(
                    request.principal, form.name, form.kind, form.source, form.python
                )
            except SpecError as error:
                form = form.with_error(error)
            else:
                return redirect("environment-version", version.environment.name, version.number)
    context = {
        "form": form,
        "existing": name,
        "pythons": _pythons(request.principal.workspace) if KINDS[form.kind].has_python else [],
        "has_python": KINDS[form.kind].has_python,
        "words": KIND_FORMS[EnvironmentKind(form.kind)],
        "kinds": KIND_FORMS,
        "package_fields": PACKAGE_FIELDS,
        "secret_names": _workspace_secrets(request) if form.kind in IMAGE_KINDS else [],
    }
    return render(request, "environments/version_form.html", context, status=400 if form.error_field else 200)


@require_safe
@needs(Role.VIEWER)
def version(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """A version: its state, packages, source, nodes and runs. `with`: the number of another version to
    compare it with."""
    workspace = request.principal.workspace
    row = _version(workspace, name, number)
    kind = kind_of(row)
    packages = kind.locked_packages(row.lock)
    image = _image(row)
    context = {
        "version": row,
        "value": f"{name}:{number}",
        "packages": packages,
        "image": image,
        "files": list(kind.version_files(row)),
        "words": KIND_FORMS[EnvironmentKind(row.kind)],
        **_nodes(row, workspace),
        **making_context(row),
        **files_context(request, row),
        "runs": runs_of(row, workspace),
        "comparison": compare(row, workspace, request.GET.get("with", "")),
        "notice": outdated_notice(row),
        "successors": _successors(row),
    }
    response = render_part(request, "environments/version.html", "environments/_version.html", context)
    if wants_part(request) and row.is_settled:
        # The page polled for this: what stands outside of the part, such as its buttons, changes, too.
        response["HX-Refresh"] = "true"
    return response


@require_safe
@needs(Role.VIEWER)
def download(request: WorkspaceRequest, name: str, number: int, file: str) -> HttpResponse:
    """The source as it was given, or the lock, as a file; of a curated environment, too."""
    row = curated_version(name) if number == 1 else None
    row = row or _version(request.principal.workspace, name, number)
    text = kind_of(row).version_files(row).get(file, "")
    if not text:
        raise Http404(f"This version has no file {file!r}.")
    response = HttpResponse(f"{text.rstrip()}\n", content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}-{number}-{file}"'
    return response


@require_POST
@needs(Role.CONTRIBUTOR)
def clone(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Makes an environment with the posted `new_name` from this one, which may be a curated one."""
    number = _number(request.POST.get("version", ""))
    source = clone_source(request.principal.workspace, name, number)
    if source is None:
        raise Http404(f"There is no environment {name!r}.")
    try:
        version = changes.clone(request.principal, source, request.POST.get("new_name", ""))
    except SpecError as error:
        messages.error(request, f"It was not cloned: {error.message}.")
        return redirect("environment-version", name, number) if number else redirect("environment", name)
    return redirect("environment-version", version.environment.name, version.number)


def _nodes(version: EnvironmentVersion, workspace: Workspace) -> dict[str, object]:
    """Returns what the page shows of nodes: nothing before the version is locked."""
    if not version.is_locked:
        return {}
    target = BuildTarget(kind_of(version).node_spec(version), version)
    return nodes_context(target, node_environments_of(version, workspace))


def _image(row: EnvironmentVersion) -> ImageLock | None:
    return read_image_lock(row.lock) if row.kind in IMAGE_KINDS and row.lock else None


def _workspace_secrets(request: WorkspaceRequest) -> list[str]:
    """Returns the names of the secrets that may hold the login of a registry."""
    return [secret.name for secret in store.visible(request.principal) if secret.user_id is None]


def _version(workspace: Workspace, name: str, number: int) -> EnvironmentVersion:
    row = find_version(workspace, name, number)
    if row is None:
        raise Http404(f"There is no version {number} of an environment {name!r} in this workspace.")
    return row


def _successors(version: EnvironmentVersion) -> list[str]:
    """Returns what to propose as the successor of the version: later versions, and curated environments."""
    environment = version.environment
    later = environment.versions.filter(state=VersionState.LOCKED, number__gt=version.number)
    return [
        *(f"{environment.name}:{number}" for number in later.values_list("number", flat=True)),
        *(item.spec.name for item in SETS if not (item.deprecated or item.successor)),
    ]


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= MAX_NUMBER_DIGITS else None


def _pythons(workspace: Workspace) -> list[str]:
    """Returns the minor versions of Python that nodes of the workspace have, the newest first."""
    versions = {
        ".".join(str(item["version"]).split(".")[:2])
        for node in visible_nodes(workspace).filter(revoked_at=None)
        for item in node.interpreters
    }
    return sorted(
        (version for version in versions if PYTHON.match(version)),
        key=lambda version: int(version.partition(".")[2]),
        reverse=True,
    )
