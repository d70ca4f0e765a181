"""The page of a datastore, with its newest test."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_POST

from datastores.models import Datastore
from datastores.states import DatastoreKind
from datastores.testing.states import UNFINISHED
from jobs.data_orders.node_choices import reading_refusal, usable_nodes
from jobs.datastore_tests.requests import MAX_NODES, begin_test, cancel_test
from jobs.datastore_tests.rows import newest_test, rows_of
from jobs.views.partials import render_part
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@require_GET
@needs(Role.VIEWER)
def datastore(request: WorkspaceRequest, name: str) -> HttpResponse:
    row = _datastore(request, name)
    test = newest_test(row)
    rows = rows_of(test) if test is not None else []
    context = {
        "datastore": row,
        "datasets": row.datasets.all(),
        "test": test,
        "rows": rows,
        "is_testing": any(item.state in UNFINISHED for item in rows),
        "choices": [(node, reading_refusal(node, row)) for node in usable_nodes(row.workspace)],
        "max_nodes": MAX_NODES,
        "is_on_hub": row.kind == DatastoreKind.HUB,
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    return render_part(request, "datastores/datastore.html", "datastores/_test.html", context)


@require_POST
@needs(Role.CONTRIBUTOR)
def datastore_test(request: WorkspaceRequest, name: str) -> HttpResponse:
    row = _datastore(request, name)
    try:
        begin_test(
            request.principal, row, request.POST.getlist("nodes") or None, request.POST.get("path", "")
        )
    except SpecError as error:
        messages.error(request, f"Nothing was tested: {error.message}.")
    return redirect("datastore", row.name)


@require_POST
@needs(Role.CONTRIBUTOR)
def datastore_test_cancel(request: WorkspaceRequest, name: str) -> HttpResponse:
    row = _datastore(request, name)
    cancel_test(request.principal, row)
    return redirect("datastore", row.name)


def _datastore(request: WorkspaceRequest, name: str) -> Datastore:
    rows = Datastore.objects.filter(workspace=request.principal.workspace)
    row: Datastore = get_object_or_404(rows.select_related("created_by", "workspace"), name=name)
    return row
