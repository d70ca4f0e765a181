"""API for the metrics of a run and their curves."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from clusters.api.telemetry_answers import json_response
from clusters.api.telemetry_query import read_flag
from clusters.api.telemetry_schema import TEXT, WHOLE, list_of, object_of
from jobs.api.base import JobsView
from tracking.curves.curve_list import children_of, list_curves
from tracking.curves.curve_query import SERIES, check_parameters, parse_query
from tracking.curves.lines import MAX_LINES, curve_lines
from trainhub_launch.errors import SpecError

NUMBER = {"type": "number"}
VALUE = {"oneOf": [NUMBER, {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]}]}
VALUE_OR_NULL = {"oneOf": [*VALUE["oneOf"], {"type": "null"}]}
NUMBERS = list_of(NUMBER)
METRIC_FIELDS = {
    "key": TEXT,
    "count": WHOLE,
    "last": VALUE,
    "min": VALUE_OR_NULL,
    "max": VALUE_OR_NULL,
    "last_step": WHOLE,
    "last_time": NUMBER,
}
RUN_METRICS = object_of(
    run=TEXT,
    number=WHOLE,
    name=TEXT,
    state=TEXT,
    is_live={"type": "boolean"},
    metrics=list_of(object_of(**METRIC_FIELDS)),
)
LINE = object_of(
    run=TEXT,
    number=WHOLE,
    **METRIC_FIELDS,
    points=WHOLE,
    is_sampled={"type": "boolean"},
    x=NUMBERS,
    y=NUMBERS,
    marks=list_of(list_of(VALUE)),
)
LINES = object_of(axis=TEXT, lines=list_of(LINE))
CHILDREN = OpenApiParameter(
    "children", int, enum=[0, 1], description="1: include the child runs that the run's processes logged."
)


class RunMetrics(JobsView):
    @extend_schema(
        parameters=[CHILDREN],
        responses={
            (200, "application/json"): {
                "allOf": [RUN_METRICS, {"type": "object", "properties": {"children": list_of(RUN_METRICS)}}],
            }
        },
        operation_id="runs_metrics_list",
    )
    def get(self, request: Request, run: str) -> HttpResponse:
        """The run's metrics: for each key the last, min and max value, and the number of points."""
        query = request._request.GET
        check_parameters(query, {"children"})
        parent = self.run(request, run)
        children = children_of(parent) if read_flag("children", query.get("children", "")) else []
        own, *others = list_curves([parent, *children])
        return json_response({**own, "children": others})


class RunMetricSeries(JobsView):
    @extend_schema(
        parameters=[*SERIES, CHILDREN],
        responses={(200, "application/json"): LINES},
        operation_id="runs_metrics_series",
    )
    def get(self, request: Request, run: str) -> HttpResponse:
        """Metric curves, downsampled for drawing to the first, min, max and last point of each pixel.

        NaN and infinities are listed in `marks`, such as [x, "NaN"]. For all points, use GET
        /api/v1/runs/{run}/metrics.csv."""
        query = request._request.GET
        curve_query = parse_query(query, extra=("children",))
        parent = self.run(request, run)
        children = children_of(parent) if read_flag("children", query.get("children", "")) else []
        drawn = curve_lines([parent, *children], curve_query, origin=parent)
        return json_response({"axis": curve_query.axis_name, "lines": [line.to_json() for line in drawn]})


def check_count(runs: int, keys: int) -> None:
    if runs * keys > MAX_LINES:
        raise SpecError("keys", f"times the runs are more than {MAX_LINES} curves; request fewer at once")
