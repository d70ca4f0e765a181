"""API for the curves of several runs."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from clusters.api.telemetry_answers import json_response
from clusters.api.telemetry_schema import TEXT, WHOLE, list_of, object_of
from jobs.api.base import JobsView
from jobs.models import Run
from tracking.api.curves import LINE, NUMBERS, RUN_METRICS, check_count
from tracking.curves.curve_list import list_curves
from tracking.curves.curve_query import SERIES, check_parameters, parse_query
from tracking.curves.lines import curve_lines
from tracking.curves.run_selection import MAX_RUNS, load_named_runs, missing_names, parse_run_names
from tracking.curves.spread import group_runs_by, spread_bands

RUNS = OpenApiParameter(
    "runs", str, required=True, description=f"Numbers or ids of runs, comma-separated; at most {MAX_RUNS}."
)
GROUP = OpenApiParameter(
    "group",
    str,
    description=(
        "params.NAME or tags.NAME. Runs with the same value form a group, whose mean and standard "
        "deviation are returned in place of its curves."
    ),
)
BAND = object_of(
    group=TEXT, runs=list_of(WHOLE), key=TEXT, x=NUMBERS, mean=NUMBERS, low=NUMBERS, high=NUMBERS
)


class _CompareView(JobsView):
    def named_runs(self, request: Request) -> list[Run]:
        """Returns the runs in the requested order. Raises Http404 if one is not in the workspace."""
        names = parse_run_names(request.query_params.get("runs", ""))
        runs = load_named_runs(self.principal(request).workspace, names)
        if missing_names(names, runs):
            raise Http404
        return runs


class CompareMetrics(_CompareView):
    @extend_schema(
        parameters=[RUNS],
        responses={(200, "application/json"): object_of(runs=list_of(RUN_METRICS))},
        operation_id="compare_metrics",
    )
    def get(self, request: Request) -> HttpResponse:
        """The metrics of each run."""
        check_parameters(request._request.GET, {"runs"})
        return json_response({"runs": list_curves(self.named_runs(request))})


class CompareSeries(_CompareView):
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
        """The metric curves of several runs. On the relative axis each starts at its own run's start. With
        `group`, means and standard deviations are returned instead."""
        query = request._request.GET
        curve_query = parse_query(query, extra=("runs", "group"))
        runs = self.named_runs(request)
        check_count(len(runs), len(curve_query.keys))
        if by := query.get("group", ""):
            bands = spread_bands(group_runs_by(runs, by), curve_query)
            return json_response(
                {"axis": curve_query.axis_name, "group": by, "bands": [band.to_json() for band in bands]}
            )
        return json_response(
            {
                "axis": curve_query.axis_name,
                "lines": [line.to_json() for line in curve_lines(runs, curve_query)],
            }
        )
