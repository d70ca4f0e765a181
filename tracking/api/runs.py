"""API that lists runs with a filter and an order, in the grammar of the run table and MLflow."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from jobs import causes
from jobs.api.run_submission import RunSubmission
from jobs.api.selection import ORDERS, PARAMETERS, RunPages, filter_runs
from jobs.api.serializers import RunSerializer
from jobs.models import Run
from tracking.history.rows import load_logged_values
from tracking.search import FilterError, RunQuery, build_query, find_run_ids
from tracking.search.parser import parse_key
from tracking.search.tree import Key
from tracking.search.vocabulary import KeyKind
from trainhub_launch.errors import SpecError
from workspaces.api.problems import ApiProblem

EXTRA_PARAMETERS = ("filter", "column")
MAX_COLUMNS = 50
MAX_SKIP = 1_000_000
FILTER_PARAMETERS = ("state", "experiment", "created_by", "parent", "search")


class MatchingRunSerializer(RunSerializer):
    values = serializers.SerializerMethodField(
        help_text=(
            "The run's value of each requested column: a number, a text, or null if the run has no value "
            "or the value is NaN."
        )
    )

    def get_values(self, run: Run) -> dict[str, Any]:
        logged = self.context["logged"]
        return {
            text: _finite(logged.values.get((run.pk, key))) for text, key in self.context["columns"].items()
        }


class MatchingRunPageSerializer(serializers.Serializer[object]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = MatchingRunSerializer(many=True)


_FILTER = OpenApiParameter(
    "filter",
    str,
    description="A filter such as `metrics.val_loss < 0.1 AND params.opt = 'adam'`; see docs/history.md.",
)
_ORDER = OpenApiParameter(
    "order",
    str,
    description=(
        f"The order: one of {', '.join(ORDERS)}, descending with a leading `-`; "
        "or a key of the filter grammar, such as `metrics.acc DESC`."
    ),
)
_COLUMN = OpenApiParameter(
    "column",
    str,
    many=True,
    description="The key of a metric, param or tag to include in `values`. The parameter may be repeated.",
)


class FilteredRunList(RunSubmission):
    @extend_schema(
        operation_id="runs_list",
        responses=MatchingRunPageSerializer,
        parameters=[*(item for item in PARAMETERS if item.name != "order"), _FILTER, _ORDER, _COLUMN],
    )
    def get(self, request: Request) -> Response:
        """The workspace's runs, by default newest first. With `filter`, or in an order by a metric, param or
        tag, child runs are listed as well."""
        try:
            return self._list_runs(request)
        except FilterError as error:
            raise filter_problem(error) from error

    def _list_runs(self, request: Request) -> Response:
        principal, text = self.principal(request), request.query_params.get("filter", "")
        query = build_query(principal.workspace, text=text, user=principal.user)
        columns = _columns(request)
        order = request.query_params.get("order", ORDERS[0])
        if order.removeprefix("-") in ORDERS:
            pages = RunPages()
            runs = filter_runs(
                query.matching_runs()[0], query.workspace, request, also=EXTRA_PARAMETERS, flat=bool(text)
            )
            page = pages.paginate_queryset(causes.annotate_lines(runs), request, view=self)
            return pages.get_paginated_response(_runs_json(page or [], columns))
        return self._list_ordered(request, query, order, columns)

    def _list_ordered(
        self, request: Request, query: RunQuery, order: str, columns: dict[str, Key]
    ) -> Response:
        """Returns a page in an order by logged data; the cursor is an offset, because such orders have no
        unique key."""
        others = filter_runs(self.runs(request), query.workspace, request, also=EXTRA_PARAMETERS, flat=True)
        # Without these parameters the subquery would only list all runs again.
        where = (
            Q(pk__in=others.order_by().values("pk"))
            if any(request.query_params.get(name) for name in FILTER_PARAMETERS)
            else Q()
        )
        size, skip = RunPages().get_page_size(request) or RunPages.page_size, _cursor_offset(request)
        ordered_query = RunQuery(query.workspace, query.filter, user=query.user, where=where)
        ids = find_run_ids(ordered_query, [order], limit=size + 1, skip=skip)
        rows = causes.annotate_lines(Run.objects.filter(pk__in=ids[:size])).select_related(
            "experiment", "created_by"
        )
        by_id = {run.pk: run for run in rows.prefetch_related("tags").defer("preview")}
        return Response(
            {
                "next": _page(request, skip + size) if len(ids) > size else None,
                "previous": _page(request, max(0, skip - size)) if skip else None,
                # A run may have been purged between the two queries.
                "results": _runs_json([by_id[run] for run in ids[:size] if run in by_id], columns),
            }
        )


def filter_problem(error: FilterError) -> ApiProblem:
    """Returns the error with the filter's text and a caret below the wrong character."""
    field = "order" if error.field == "order_by" else error.field
    return ApiProblem(400, f"{field}: {error}", [(field, error.sentence)])


def _runs_json(runs: Sequence[Any], columns: dict[str, Key]) -> Any:
    logged = load_logged_values([run.pk for run in runs], columns.values())
    return MatchingRunSerializer(runs, many=True, context={"logged": logged, "columns": columns}).data


def _columns(request: Request) -> dict[str, Key]:
    texts = request.query_params.getlist("column")
    if len(texts) > MAX_COLUMNS:
        raise SpecError("column", f"may name at most {MAX_COLUMNS} columns")
    runs = {text: parse_key(text) for text in texts}
    for text, key in runs.items():
        if key.kind not in (KeyKind.METRIC, KeyKind.PARAM, KeyKind.TAG):
            raise SpecError(
                "column",
                f"{text!r} is in every response already, or is not a column; name metrics, params or tags",
            )
    return runs


def _cursor_offset(request: Request) -> int:
    cursor = request.query_params.get("cursor", "")
    if not cursor:
        return 0
    try:
        skip = int(base64.urlsafe_b64decode(cursor).decode().removeprefix("skip="))
    except (ValueError, binascii.Error) as error:
        raise SpecError("cursor", "is not a cursor of this list; start again without it") from error
    if not 0 <= skip <= MAX_SKIP:
        raise SpecError("cursor", "is too far; narrow the list with a filter")
    return skip


def _page(request: Request, skip: int) -> str:
    cursor = base64.urlsafe_b64encode(f"skip={skip}".encode()).decode()
    return replace_query_param(request.build_absolute_uri(), "cursor", cursor)


def _finite(value: object) -> Any:
    """Returns the value; infinities, which JSON cannot represent, become words."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value
