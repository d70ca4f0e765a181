"""The page that makes a version of a dataset from the outputs of a run."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from datastores.uploads import new_datasets
from jobs.dataset_pages.forms import OutputForm
from jobs.lineage import output_versions
from jobs.models import Run
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@needs(Role.CONTRIBUTOR)
@require_http_methods(["GET", "POST"])
def output_create(request: WorkspaceRequest) -> HttpResponse:
    """Shows the form, filled from the query; makes the version, or shows it again with what was typed."""
    workspace = request.principal.workspace
    form = OutputForm(
        request.POST or None,
        initial=request.GET.dict(),
        datastores=new_datasets.hub_datastores(workspace),
        workspace=workspace,
    )
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        run = Run.objects.for_workspace(workspace).filter(number=fields.pop("run")).first()
        try:
            if run is None:
                raise SpecError("run", "there is no such run in this workspace")
            version = output_versions.make_version(
                request.principal, run, **{**fields, "attempt": fields["attempt"] or 0}
            )
        except SpecError as error:
            field = error.field if error.field in form.fields else None
            form.add_error(field, f"{error.message[:1].upper()}{error.message[1:]}.")
        else:
            messages.success(request, f"{version} has the files of {run}. Runs can read them now.")
            return redirect("dataset-version", version.dataset.name, version.number)
    context = {"form": form}
    return render(request, "datastores/output_form.html", context, status=400 if form.errors else 200)
