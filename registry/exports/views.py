from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from jobs.scheduling.default_cluster import default_cluster
from registry.errors import RegistryError
from registry.exports.export_start import start
from registry.exports.forms import ExportForm, initial_of
from registry.exports.options import Options, candidates
from registry.lookup import version_of
from registry.models import Export, ModelVersion
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Role.CONTRIBUTOR)
def export(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """GET: shows the form, filled with the options of the export `again` if that is given. POST: starts an
    export, or shows the form again with the typed values."""
    version = _version(request, name, number)
    workspace = request.principal.workspace
    if request.method != "POST":
        before = _before(version, request)
        initial: dict[str, object] = {"cluster": default_cluster(request.principal)}
        if before:
            initial = initial_of(Options.from_json(before.options))
        return _page(
            request, version, ExportForm(version=version, workspace=workspace, initial=initial), before=before
        )
    form = ExportForm(request.POST, version=version, workspace=workspace)
    if not form.is_valid():
        return _page(request, version, form, status=422)
    try:
        started = start(version, form.options(), request.principal)
    except RegistryError as error:
        form.add_error(error.field if error.field in form.fields else None, _sentence(error))
        return _page(request, version, form, status=422)
    messages.success(request, f"The export runs as {started.run}; its result appears on the version's page.")
    return redirect("run", started.run.number) if started.run else redirect("model-version", name, number)


@require_safe
@needs(Role.VIEWER)
def exports(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    """Renders the part of a version's page that lists its exports."""
    version = _version(request, name, number)
    may_write = request.principal.may(Role.CONTRIBUTOR)
    return render(request, "registry/_exports.html", {"version": version, "may_write": may_write})


def _page(
    request: HttpRequest,
    version: ModelVersion,
    form: ExportForm,
    *,
    before: Export | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "version": version,
        "model": version.model,
        "form": form,
        "before": before,
        "has_candidates": candidates(version),
    }
    return render(request, "registry/export.html", context, status=status)


def _before(version: ModelVersion, request: HttpRequest) -> Export | None:
    """Returns the export whose options fill the form, or None."""
    export_id = request.GET.get("again", "")
    return (
        Export.objects.filter(version=version, pk=int(export_id)).first()
        if export_id.isdecimal() and len(export_id) < 19
        else None
    )


def _version(request: WorkspaceRequest, name: str, number: int) -> ModelVersion:
    version = version_of(request.principal.workspace, name, str(number))
    if version is None:
        raise Http404
    return version


def _sentence(error: RegistryError) -> str:
    return (
        error.message[:1].upper()
        + error.message[1:]
        + ("" if error.message.endswith((".", "?", "…")) else ".")
    )
