"""Filters, orders and paginates lists of runs. An unknown parameter is an error, not an unfiltered list."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from jobs.querysets import RunQuerySet
from jobs.states import RunState
from trainhub_launch.errors import SpecError

ACTIVE = "active"
STATES = (ACTIVE, *(state.value for state in RunState))
ORDERS = ("created_at", "number", "display_name", "state_since")
PARAMETERS = [
    OpenApiParameter("state", str, description="A state, or `active`.", enum=STATES),
    OpenApiParameter("experiment", str, description="An experiment's name."),
    OpenApiParameter("created_by", str, description="A person's user name."),
    OpenApiParameter(
        "parent",
        str,
        description="A run's id: what its processes logged beside it, and what is nested in it.",
    ),
    OpenApiParameter("search", str, description="Part of the name or experiment, or the number."),
    OpenApiParameter(
        "order",
        str,
        description="`-` in front: descending.",
        enum=[f"{sign}{name}" for name in ORDERS for sign in ("", "-")],
    ),
]


class RunPages(CursorPagination):
    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering = ("-created_at", "-number")

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:  # noqa: ARG002 - DRF's signature
        order = request.query_params.get("order", "-created_at")
        if order.removeprefix("-") not in ORDERS:
            raise SpecError("order", f"must be one of {', '.join(ORDERS)}, or -NAME")
        # The unique number breaks ties, so that no run is missed or shown twice.
        return (order, "-number" if order.startswith("-") else "number")


def filter_runs(
    runs: RunQuerySet, request: Request, *, also: Collection[str] = (), flat: bool = False
) -> RunQuerySet:
    """Filters runs by the request's parameters. Raises SpecError for an unknown one.

    `also`: further parameters that the caller reads. `flat`: nested runs are listed too."""
    params = request.query_params
    allowed = {parameter.name for parameter in PARAMETERS} | {"cursor", RunPages.page_size_query_param, *also}
    for name in params:
        if name not in allowed:
            raise SpecError(name, f"is not a known parameter; known here: {', '.join(sorted(allowed))}")
    state = params.get("state", "")
    if state and state not in STATES:
        raise SpecError("state", f"must be one of {', '.join(STATES)}")
    queryset = runs.matching(
        state=state, experiment=params.get("experiment", ""), text=params.get("search", "").strip()
    )
    if created_by := params.get("created_by", ""):
        queryset = queryset.filter(created_by__username=created_by)
    if parent := params.get("parent", ""):
        queryset = queryset.filter(parent=parent)
    elif not flat:
        queryset = queryset.leading()
    return queryset.select_related("experiment", "created_by").prefetch_related("tags")
