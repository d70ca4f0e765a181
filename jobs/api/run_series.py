"""The API for the measurements of a run's GPUs and machines, with its ranks and phases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from clusters.api.telemetry import devices_of
from clusters.api.telemetry_answers import SeriesAnswer, csv_response, file_name, json_response, node_json
from clusters.api.telemetry_query import METRICS, SPAN, TelemetryQuery, read_flag, read_query
from clusters.api.telemetry_schema import MOMENT, NODE, TEXT, WHOLE, list_of, object_of, response_schemas
from clusters.visibility import visible_nodes
from jobs import run_curves
from jobs.api.base import JobsView
from jobs.api.run_detail import ATTEMPT
from jobs.models import Attempt, Member, Run
from jobs.views import timeline
from trainhub_launch.telemetry import BUCKET_S

ALL_GPUS = OpenApiParameter(
    "all_gpus",
    int,
    enum=[0, 1],
    description="1: include all GPUs of the run's nodes, not only those that the run uses.",
)
RUN_SERIES = object_of(
    attempt=WHOLE,
    from_=MOMENT,
    to=MOMENT,
    step_s=WHOLE,
    nodes=list_of(NODE),
    ranks=list_of(object_of(rank=WHOLE, node=TEXT, gpus=list_of(TEXT))),
    phases=list_of(object_of(name=TEXT, from_={"type": "number"}, to={"type": "number"})),
)


class RunSeries(JobsView):
    @extend_schema(
        parameters=[ATTEMPT, ALL_GPUS, *SPAN, *METRICS],
        responses=response_schemas(RUN_SERIES),
        operation_id="runs_series_retrieve",
    )
    def get(self, request: Request, run: str) -> HttpResponse:
        """The GPU and host metrics of an attempt over time, by default from its placement to its end. They
        are kept as long as the run."""
        instance, now = self.run(request, run), datetime.now(UTC)
        number = self.attempt(request, instance)
        attempt = Attempt.objects.filter(run=instance, number=number).first()
        # A run that waits for its first attempt has a span, and no curves.
        whole = (
            run_curves.span(attempt, now)
            if attempt
            else (instance.created_at.timestamp(), now.timestamp() + BUCKET_S)
        )
        query = read_query(
            request.query_params,
            now.timestamp(),
            takes=("metrics", "host", "attempt", "all_gpus"),
            span=whole,
        )
        members = list(Member.objects.filter(attempt=attempt).select_related("node")) if attempt else []
        nodes = self._node_series(request, attempt, members, query) if attempt else []
        if query.as_csv:
            name = file_name(f"run-{instance.number}", f"attempt-{number}", "series")
            return csv_response(name, nodes, query.gpu_metrics, query.host_metrics)
        return json_response(
            {
                "attempt": number,
                "from": int(query.start),
                "to": int(query.end),
                "step_s": nodes[0].series.grid.step_s if nodes else BUCKET_S,
                "nodes": [node_json(item) for item in nodes],
                "ranks": [
                    {"rank": member.rank, "node": member.node.name, "gpus": member.gpus} for member in members
                ],
                "phases": _phases(instance, number, whole, now),
            }
        )

    def _node_series(
        self, request: Request, attempt: Attempt, members: list[Member], query: TelemetryQuery
    ) -> list[SeriesAnswer]:
        wants_all = read_flag("all_gpus", request.query_params.get("all_gpus", ""))
        visible = (
            set(visible_nodes(self.principal(request).workspace).values_list("pk", flat=True))
            if wants_all
            else set()
        )
        own, reader = run_curves.gpus_of_run(members), run_curves.CurveReader(attempt)
        curve_query = run_curves.CurveQuery(
            query.gpu_metrics, query.host_metrics, query.start, query.end, query.points
        )
        answers_by_node = []
        for node in run_curves.nodes_of_run(attempt):
            # A workspace that may not use the cluster any more sees what was its own, not what others do
            # there.
            is_all = wants_all and node.pk in visible
            gpus = None if is_all else own.get(node.pk, [])
            series = reader.read(node, gpus, curve_query)
            answers_by_node.append(
                SeriesAnswer(
                    node.name, series, devices_of(node, series.gpus if gpus is None else gpus, present=False)
                )
            )
        return answers_by_node


def _phases(run: Run, attempt: int, whole: tuple[float, float], now: datetime) -> list[dict[str, Any]]:
    """Returns the phases that overlap the attempt, cut to its time span."""
    phases = []
    for phase in timeline.phases(run.created_at, run.events.all(), now):
        start = max(phase.since.timestamp(), whole[0])
        end = min(phase.since.timestamp() + phase.seconds, whole[1])
        if start < end and phase.attempt in (None, attempt):
            phases.append({"name": phase.word, "from": start, "to": end})
    return phases
