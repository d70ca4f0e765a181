"""The page of the workspace's data."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from datastores import changes
from datastores.forms import DatastoreForm
from datastores.models import Datastore
from datastores.states import DatastoreKind
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@require_GET
@needs(Role.VIEWER)
def datastores(request: WorkspaceRequest) -> HttpResponse:
    return _page(request)


@needs(Role.CONTRIBUTOR)
@require_POST
def datastore_create(request: WorkspaceRequest) -> HttpResponse:
    form = DatastoreForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _page(request, form)
    fields = form.cleaned_data
    try:
        datastore = changes.create(
            request.principal, fields["name"], DatastoreKind.FOLDER, fields["path"], fields["description"]
        )
    except SpecError as error:
        form.add_error(error.field, f"{error.message[:1].upper()}{error.message[1:]}.")
        return _page(request, form)
    messages.success(request, f"Runs can read {datastore.name} now.")
    return redirect("data")


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


def _page(request: WorkspaceRequest, form: DatastoreForm | None = None) -> HttpResponse:
    rows = Datastore.objects.filter(workspace=request.principal.workspace).select_related("created_by")
    context = {
        "datastores": rows,
        "form": form or DatastoreForm(label_suffix=""),
        "may_add": request.principal.may(Role.CONTRIBUTOR),
        "principal": request.principal,
    }
    return render(request, "datastores/datastores.html", context, status=400 if form else 200)
