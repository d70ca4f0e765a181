"""Filters, orders and paginates lists of runs. An unknown parameter is an error, not an unfiltered list."""

from __future__ import annotations

from collections.abc import Collection

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from jobs.querysets import RunQuerySet
from jobs.states import RunState
from trainhub_launch.errors import SpecError
from workspaces.api.cursor_pages import CursorPages
from workspaces.models import Workspace

ACTIVE = "active"
STATES = (ACTIVE, *(state.value for state in RunState))
ORDERS = ("created_at", "number", "display_name", "state_since")
PARAMETERS = [
    OpenApiParameter(
        "state",
        str,
        description="Only runs in this state; `active` selects all runs that have not ended.",
        enum=STATES,
    ),
    OpenApiParameter("experiment", str, description="Only runs of the experiment with this name."),
    OpenApiParameter("created_by", str, description="Only runs created by the user with this name."),
    OpenApiParameter(
        "parent",
        str,
        description="A run's id. Only runs that its processes logged, and runs nested in it.",
    ),
    OpenApiParameter(
        "search", str, description="Part of the run's name or of its experiment's name, or the run's number."
    ),
    OpenApiParameter(
        "order",
        str,
        description="The field to sort by; a leading `-` sorts in descending order.",
        enum=[f"{sign}{name}" for name in ORDERS for sign in ("", "-")],
    ),
]


class RunPages(CursorPages):
    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering = ("-created_at", "-number")

    # The parameters are those that the REST framework passes.
    def get_ordering(
        self,
        request: Request,
        queryset: object,  # noqa: ARG002
        view: object,  # noqa: ARG002
    ) -> tuple[str, ...]:
        order = request.query_params.get("order", "-created_at")
        if order.removeprefix("-") not in ORDERS:
            raise SpecError("order", f"must be one of {', '.join(ORDERS)}, or -NAME")
        # The unique number breaks ties, so that no run is missed or shown twice.
        return (order, "-number" if order.startswith("-") else "number")


def filter_runs(
    runs: RunQuerySet,
    workspace: Workspace,
    request: Request,
    *,
    also: Collection[str] = (),
    flat: bool = False,
) -> RunQuerySet:
    """Filters runs of the workspace by the request's parameters. Raises SpecError for an unknown one.

    `also`: further parameters that the caller reads. `flat`: nested runs are listed too."""
    params = request.query_params
    allowed = {parameter.name for parameter in PARAMETERS} | {"cursor", RunPages.page_size_query_param, *also}
    for name in params:
        if name not in allowed:
            raise SpecError(name, f"is not a known parameter; known parameters: {', '.join(sorted(allowed))}")
    state = params.get("state", "")
    if state and state not in STATES:
        raise SpecError("state", f"must be one of {', '.join(STATES)}")
    queryset = runs.matching(
        workspace,
        state=state,
        experiment=params.get("experiment", ""),
        text=params.get("search", "").strip(),
    )
    if created_by := params.get("created_by", ""):
        queryset = queryset.filter(created_by__username=created_by)
    if parent := params.get("parent", ""):
        queryset = queryset.filter(parent=parent)
    # Runs that a job's processes logged are listed only for their parent.
    elif not flat:
        queryset = queryset.leading()
    return queryset.select_related("experiment", "created_by").prefetch_related("tags")
