"""The pages of the workspace's data."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from datastores import changes
from datastores.datasets.newest import newest_versions
from datastores.datasets.tags import filter_by_tag
from datastores.forms import FORMS
from datastores.models import Dataset, DatasetVersion, Datastore
from datastores.states import KIND_WORDS, DatastoreKind
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.secrets import store
from workspaces.states import Role


@require_GET
@needs(Role.VIEWER)
def datastores(request: WorkspaceRequest) -> HttpResponse:
    rows = Datastore.objects.filter(workspace=request.principal.workspace).select_related("created_by")
    tag = request.GET.get("tag", "")
    context = {
        "datastores": rows,
        "datasets": _datasets(request.principal.workspace, tag),
        "tag": tag,
        "may_add": request.principal.may(Role.CONTRIBUTOR),
        "principal": request.principal,
    }
    return render(request, "datastores/datastores.html", context)


def _datasets(workspace: Workspace, tag: str) -> list[tuple[Dataset, DatasetVersion | None]]:
    """Returns each dataset with its newest version that runs can read, else with its newest one; with `tag`
    only those that have it."""
    newest = newest_versions(workspace)
    datasets = Dataset.objects.filter(workspace=workspace).select_related("datastore")
    listed = filter_by_tag(datasets, tag) if tag else datasets
    return [(dataset, newest.get(dataset.pk)) for dataset in listed]


@needs(Role.CONTRIBUTOR)
@require_http_methods(["GET", "POST"])
def datastore_create(request: WorkspaceRequest) -> HttpResponse:
    try:
        kind = DatastoreKind(request.GET.get("kind", DatastoreKind.FOLDER))
    except ValueError as error:
        raise Http404 from error
    secrets = [secret.name for secret in store.visible(request.principal) if secret.user_id is None]
    form = FORMS[kind](request.POST or None, secrets=secrets)
    if request.method == "POST" and form.is_valid():
        name, description = form.cleaned_data["name"], form.cleaned_data["description"]
        try:
            datastore = changes.create(request.principal, name, kind, form.place_fields(), description)
        except SpecError as error:
            form.add_error(error.field, f"{error.message[:1].upper()}{error.message[1:]}.")
        else:
            if kind == DatastoreKind.HUB:
                messages.success(request, f"People can upload files into datasets of {datastore.name} now.")
            else:
                messages.success(request, f"Runs can read {datastore.name} now. Test whether every node can.")
            return redirect("datastore", datastore.name)
    context = {"form": form, "kind": kind, "kinds": KIND_WORDS, "has_secrets": bool(secrets)}
    return render(request, "datastores/datastore_form.html", context, status=400 if form.errors else 200)


@needs(Role.CONTRIBUTOR)
@require_POST
def datastore_delete(request: WorkspaceRequest, name: str) -> HttpResponse:
    datastore = get_object_or_404(Datastore, workspace=request.principal.workspace, name=name)
    try:
        changes.delete(request.principal, datastore)
    except SpecError as error:
        messages.error(request, f"{error.message[:1].upper()}{error.message[1:]}.")
    else:
        messages.success(request, f"The datastore {name} is deleted. Its data stays where it is.")
    return redirect("data")
