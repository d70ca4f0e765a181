"""API for what happened to a run while it logged."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from clusters.api.telemetry_answers import json_response
from clusters.api.telemetry_schema import TEXT, WHOLE, list_of, object_of
from jobs.api.base import JobsView
from tracking.api.curves import NUMBER
from tracking.curves.annotations import ALERT, ATTEMPT, STATE, annotations_of
from tracking.curves.curve_query import check_parameters
from tracking.curves.lines import start_ms

_NULL = {"type": "null"}
ANNOTATION = object_of(
    kind={"type": "string", "enum": [STATE, ATTEMPT, ALERT]},
    at=NUMBER,
    until={"oneOf": [NUMBER, _NULL]},
    is_open={"type": "boolean"},
    step={"oneOf": [WHOLE, _NULL]},
    label=TEXT,
    text=TEXT,
    tone=TEXT,
)


class RunAnnotations(JobsView):
    @extend_schema(
        responses={
            (200, "application/json"): object_of(
                run=TEXT, number=WHOLE, start=NUMBER, annotations=list_of(ANNOTATION)
            )
        },
        operation_id="runs_annotations",
    )
    def get(self, request: Request, run: str) -> HttpResponse:
        """The run's changes of state, restarts and alerts on its GPUs, for charts. Times and `start`, the
        zero of a relative axis, are Unix seconds."""
        check_parameters(request._request.GET, set())
        row = self.run(request, run)
        annotations = annotations_of(row, self.principal(request).workspace)
        return json_response(
            {
                "run": row.pk,
                "number": row.number,
                "start": start_ms(row) / 1000,
                "annotations": [annotation.to_json() for annotation in annotations],
            }
        )
