"""The pages of a dataset and of its versions."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from datastores.datasets import changes, file_list
from datastores.datasets.tags import parse_tag
from datastores.models import Dataset, DatasetVersion, Datastore
from datastores.states import ListingState
from jobs.dataset_pages.data_nodes import nodes_with
from jobs.dataset_pages.forms import DatasetForm
from jobs.models import DataOrder, DatasetOrigin, DatasetUse, Run
from jobs.node_listings import listing_progress
from jobs.views.partials import render_part
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

MAX_RUNS = 20
ON_A_PAGE = 100
MAX_NUMBER = 2**31 - 1


@needs(Role.CONTRIBUTOR)
@require_http_methods(["GET", "POST"])
def dataset_create(request: WorkspaceRequest) -> HttpResponse:
    datastores = Datastore.objects.filter(workspace=request.principal.workspace)
    listable = [datastore.name for datastore in datastores if not changes.listing_refusal(datastore)]
    initial = {"datastore": request.GET.get("datastore", "")}
    form = DatasetForm(request.POST or None, datastores=listable, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            version = changes.create(request.principal, **form.cleaned_data)
        except SpecError as error:
            form.add_error(error.field, f"{error.message[:1].upper()}{error.message[1:]}.")
        else:
            return redirect("dataset", version.dataset.name)
    context = {"form": form, "has_datastores": bool(listable)}
    return render(request, "datastores/dataset_form.html", context, status=400 if form.errors else 200)


@require_GET
@needs(Role.VIEWER)
def dataset(request: WorkspaceRequest, name: str) -> HttpResponse:
    row = _dataset(request, name)
    versions = [*row.versions.select_related("created_by", "dataset__datastore")]
    context = {
        "dataset": row,
        "versions": versions,
        "is_listing": any(version.state == ListingState.LISTING for version in versions),
        "runs": _runs(request.principal.workspace).filter(dataset_uses__version__dataset=row)[:MAX_RUNS],
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    return render_part(request, "datastores/dataset.html", "datastores/_dataset.html", context)


@require_GET
@needs(Role.VIEWER)
def dataset_version(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    version = _version(request, name, number)
    page = _page(request.GET.get("page", "1"))
    start = (page - 1) * ON_A_PAGE
    files = file_list.read_page(version, start, ON_A_PAGE) if version.is_ready else []
    origin = DatasetOrigin.objects.filter(version=version).select_related("run").first()
    if version.is_ready and not files:
        raise Http404("There is no such page of files.")
    context = {
        "version": version,
        "files": files,
        "differences": file_list.differences_of(version),
        "origin": origin,
        "origin_run": origin.run if origin and origin.run and not origin.run.deleted_at else None,
        **_listing(version),
        "first": start + 1,
        "last": start + len(files),
        "previous_page": page - 1,
        "next_page": page + 1 if start + len(files) < version.files else 0,
        "nodes": nodes_with(version) if version.is_ready else [],
        "runs": _runs_of_version(request.principal.workspace, version)[:MAX_RUNS],
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    return render_part(request, "datastores/version.html", "datastores/_version.html", context)


@needs(Role.CONTRIBUTOR)
@require_POST
def dataset_refresh(request: WorkspaceRequest, name: str) -> HttpResponse:
    try:
        version = changes.refresh(request.principal, _dataset(request, name))
    except SpecError as error:
        messages.error(request, f"{error.message[:1].upper()}{error.message[1:]}.")
        return redirect("dataset", name)
    return redirect("dataset-version", name, version.number)


@needs(Role.CONTRIBUTOR)
@require_POST
def dataset_change(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Sets whichever is given: a description, a tag; and removes the tag in `remove_tag`."""
    form = request.POST
    try:
        tags: dict[str, str | None] = dict([parse_tag(form["tag"])] if "tag" in form else [])
        if "remove_tag" in form:
            tags[form["remove_tag"]] = None
        changes.describe(request.principal, _dataset(request, name), form.get("description"), tags)
    except SpecError as error:
        messages.error(request, f"Nothing was changed: {error.message}.")
    return redirect("dataset", name)


@needs(Role.CONTRIBUTOR)
@require_POST
def dataset_delete(request: WorkspaceRequest, name: str) -> HttpResponse:
    try:
        changes.delete(request.principal, _dataset(request, name))
    except SpecError as error:
        messages.error(request, f"{error.message[:1].upper()}{error.message[1:]}.")
        return redirect("dataset", name)
    messages.success(request, f"The dataset {name} is deleted. Its files stay where they are.")
    return redirect("data")


def _dataset(request: WorkspaceRequest, name: str) -> Dataset:
    rows = Dataset.objects.filter(workspace=request.principal.workspace)
    row: Dataset = get_object_or_404(rows.select_related("datastore", "created_by"), name=name)
    return row


def _version(request: WorkspaceRequest, name: str, number: int) -> DatasetVersion:
    if number > MAX_NUMBER:
        raise Http404("There is no such version.")
    rows = DatasetVersion.objects.filter(
        dataset__workspace=request.principal.workspace, dataset__name=name, number=number
    )
    row: DatasetVersion = get_object_or_404(
        rows.select_related("dataset__datastore__workspace", "manifest", "created_by")
    )
    return row


def _listing(version: DatasetVersion) -> dict[str, object]:
    """Returns which node lists the files, or why none does, if the hub cannot."""
    if not version.dataset.datastore.is_listed_by_node:
        return {"lister": "The hub lists"}
    is_listing = version.state == ListingState.LISTING
    order = listing_progress.newest_order(version)
    is_waiting = is_listing and (order is None or order.is_finished)
    return {
        "order": order,
        "lister": _lister(order),
        "waiting_reason": listing_progress.no_node_reason(version) if is_waiting else "",
    }


def _lister(order: DataOrder | None) -> str:
    """Returns who lists the files, up to the verb."""
    if order is None:
        return "A node soon lists"
    if order.is_finished:
        return f"{order.node.name} has listed"
    return f"{order.node.name} {'lists' if order.claimed_at else 'is to list'}"


def _page(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not int(text):
        raise Http404("There is no such page of files.")
    return int(text)


def _runs_of_version(workspace: Workspace, version: DatasetVersion) -> QuerySet[Run]:
    """Returns the runs that read it, with `is_inexact`: whether some of its files were changed by then."""
    inexact = DatasetUse.objects.filter(run=OuterRef("pk"), version=version, is_exact=False)
    return _runs(workspace).filter(dataset_uses__version=version).annotate(is_inexact=Exists(inexact))


def _runs(workspace: Workspace) -> QuerySet[Run]:
    runs = Run.objects.for_workspace(workspace).listed().order_by("-number").distinct()
    return runs.select_related("experiment").defer("preview")
