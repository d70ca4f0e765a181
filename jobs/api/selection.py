"""Which runs a list shows, in which order, page by page. A misspelt parameter is an error, not an unfiltered
list."""

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
        wanted = request.query_params.get("order", "-created_at")
        if wanted.removeprefix("-") not in ORDERS:
            raise SpecError("order", f"must be one of {', '.join(ORDERS)}, or -NAME")
        # The number is unique, so that no run is missed or shown twice where many are alike.
        return (wanted, "-number" if wanted.startswith("-") else "number")


def selected(
    runs: RunQuerySet, request: Request, *, also: Collection[str] = (), flat: bool = False
) -> RunQuerySet:
    """`also`: parameters that whoever asks reads beside these. `flat`: what is part of another run is listed
    too."""
    asked = request.query_params
    known = {parameter.name for parameter in PARAMETERS} | {"cursor", RunPages.page_size_query_param, *also}
    for name in asked:
        if name not in known:
            raise SpecError(name, f"is not a known parameter; known here: {', '.join(sorted(known))}")
    state = asked.get("state", "")
    if state and state not in STATES:
        raise SpecError("state", f"must be one of {', '.join(STATES)}")
    found = runs.matching(
        state=state, experiment=asked.get("experiment", ""), text=asked.get("search", "").strip()
    )
    if created_by := asked.get("created_by", ""):
        found = found.filter(created_by__username=created_by)
    if parent := asked.get("parent", ""):
        found = found.filter(parent=parent)
    elif not flat:
        found = found.leading()
    return found.select_related("experiment", "created_by").prefetch_related("tags")
