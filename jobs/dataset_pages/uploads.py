"""The pages on which files are uploaded into a dataset."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from datastores.datasets import changes
from datastores.models import Dataset, DatasetVersion
from datastores.states import ListingState
from datastores.uploads import file_rules, new_datasets, sessions
from jobs.dataset_pages.forms import UploadForm
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@needs(Role.CONTRIBUTOR)
@require_http_methods(["GET", "POST"])
def upload_create(request: WorkspaceRequest) -> HttpResponse:
    """Makes a dataset for files that are uploaded next."""
    form = UploadForm(
        request.POST or None, datastores=new_datasets.hub_datastores(request.principal.workspace)
    )
    if request.method == "POST" and form.is_valid():
        try:
            version = new_datasets.create(request.principal, **form.cleaned_data)
        except SpecError as error:
            form.add_error(error.field, f"{error.message[:1].upper()}{error.message[1:]}.")
        else:
            return redirect("dataset-upload", version.dataset.name)
    context = {"form": form}
    return render(request, "datastores/upload_form.html", context, status=400 if form.errors else 200)


@require_GET
@needs(Role.CONTRIBUTOR)
def dataset_upload(request: WorkspaceRequest, name: str) -> HttpResponse:
    dataset = _dataset(request, name)
    version = _upload(dataset)
    context = {
        "dataset": dataset,
        "version": version,
        "is_own": version is None or version.created_by_id == request.principal.user.pk,
        "refusal": changes.upload_refusal(dataset.datastore),
        "max_files": file_rules.MAX_FILES,
        "max_bytes": file_rules.MAX_BYTES,
        "kept_days": sessions.KEEP_DAYS,
    }
    return render(request, "datastores/upload.html", context)


@needs(Role.CONTRIBUTOR)
@require_POST
def upload_cancel(request: WorkspaceRequest, name: str) -> HttpResponse:
    dataset = _dataset(request, name)
    version = _upload(dataset)
    if version is not None:
        try:
            sessions.cancel_upload(request.principal, version)
        except SpecError as error:
            messages.error(request, f"{error.message[:1].upper()}{error.message[1:]}.")
        else:
            messages.success(
                request, f"The upload of {version} is cancelled; what had come of it is forgotten."
            )
    return redirect("dataset", name)


def _dataset(request: WorkspaceRequest, name: str) -> Dataset:
    rows = Dataset.objects.filter(workspace=request.principal.workspace).select_related("datastore")
    dataset: Dataset = get_object_or_404(rows, name=name)
    return dataset


def _upload(dataset: Dataset) -> DatasetVersion | None:
    versions = dataset.versions.filter(state=ListingState.UPLOADING).select_related("dataset", "created_by")
    return versions.first()
