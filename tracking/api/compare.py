"""Several runs in one answer."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from clusters.api.telemetry_answers import json_response
from clusters.api.telemetry_schema import TEXT, WHOLE, list_of, object_of
from jobs.api.base import JobsView
from jobs.models import Run
from tracking.api.curves import LINE, NUMBERS, RUN_METRICS, check_count
from tracking.curves.curve_list import listing
from tracking.curves.curve_query import SERIES, asked_of, only
from tracking.curves.lines import lines
from tracking.curves.run_selection import MOST_RUNS, chosen, missing, names_of
from tracking.curves.spread import bands, groups_of

RUNS = OpenApiParameter(
    "runs", str, required=True, description=f"Numbers or ids, comma-separated; at most {MOST_RUNS}."
)
GROUP = OpenApiParameter(
    "group",
    str,
    description=(
        "params.NAME or tags.NAME: the mean of the runs that share a value, and their standard deviation."
    ),
)
BAND = object_of(
    group=TEXT, runs=list_of(WHOLE), key=TEXT, x=NUMBERS, mean=NUMBERS, low=NUMBERS, high=NUMBERS
)


class _Compared(JobsView):
    def chosen(self, request: Request) -> list[Run]:
        """In the order in which they were named; 404 where one of them is not of this workspace."""
        names = names_of(request.query_params.get("runs", ""))
        found = chosen(self.principal(request).workspace, names)
        if missing(names, found):
            raise Http404
        return found


class CompareMetrics(_Compared):
    @extend_schema(
        parameters=[RUNS],
        responses={(200, "application/json"): object_of(runs=list_of(RUN_METRICS))},
        operation_id="compare_metrics",
    )
    def get(self, request: Request) -> HttpResponse:
        """The metrics of each run."""
        only(request._request.GET, {"runs"})
        return json_response({"runs": listing(self.chosen(request))})


class CompareSeries(_Compared):
    @extend_schema(
        parameters=[RUNS, *SERIES, GROUP],
        operation_id="compare_series",
        responses={
            (200, "application/json"): {
                "type": "object",
                "properties": {
                    "axis": TEXT,
                    "lines": list_of(LINE),
                    "group": TEXT,
                    "bands": list_of(BAND),
                },
            }
        },
    )
    def get(self, request: Request) -> HttpResponse:
        """Curves of several runs, each from its own beginning on a relative axis; with `group` their means
        and spreads."""
        query = request._request.GET
        asked = asked_of(query, takes=("runs", "group"))
        runs = self.chosen(request)
        check_count(len(runs), len(asked.keys))
        if by := query.get("group", ""):
            found = bands(groups_of(runs, by), asked)
            return json_response(
                {"axis": asked.axis, "group": by, "bands": [band.to_json() for band in found]}
            )
        return json_response({"axis": asked.axis, "lines": [line.to_json() for line in lines(runs, asked)]})
