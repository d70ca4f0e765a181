"""The API of telemetry: curves of a node or a GPU, the heat map of a cluster, and the table of metrics."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from typing import cast

from django.http import Http404, HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.api.telemetry_answers import (
    GpuLabel,
    SeriesAnswer,
    csv_response,
    file_name,
    heat_csv_response,
    json_response,
    node_json,
    span_json,
)
from clusters.api.telemetry_query import METRICS, SPAN, TelemetryQuery, read_metric, read_query
from clusters.api.telemetry_schema import HEAT, METRIC_TABLES, SERIES, response_schemas
from clusters.models import Gpu, Node, TelemetryChunk
from clusters.telemetry import heat, series
from clusters.visibility import clusters_of, visible_nodes
from trainhub_launch.errors import SpecError
from trainhub_launch.metrics import GPU_METRICS, HOST_METRICS, MetricField
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import Workspace
from workspaces.states import Role

GPUS = OpenApiParameter(
    "gpus", str, description="The UUIDs of GPUs of the node, comma-separated; all of them by default."
)
METRIC = OpenApiParameter(
    "metric",
    str,
    description="The key of one GPU metric (see GET /api/v1/metrics/); utilization_pct by default.",
)


class _TelemetryView(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    def workspace(self, request: Request) -> Workspace:
        return cast("PrincipalRequest", request).principal.workspace


class NodeSeriesView(_TelemetryView):
    @extend_schema(
        parameters=[*SPAN, *METRICS, GPUS],
        responses=response_schemas(SERIES),
        operation_id="nodes_series_retrieve",
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        """Means and maxima of the metrics of a node and its GPUs over time; gaps are null."""
        node = visible_nodes(self.workspace(request)).filter(name=name).first()
        if node is None:
            raise Http404
        now = time.time()
        query = read_query(request.query_params, now, takes=("metrics", "host", "gpus"))
        gpus = _gpus_of(node, request.query_params.get("gpus"))
        node_series = series.read_node(
            node,
            gpus,
            gpu_metrics=query.gpu_metrics,
            host_metrics=query.host_metrics,
            start=query.start,
            end=query.end,
            points=query.points,
            now=now,
        )
        result = SeriesAnswer(
            node.name,
            node_series,
            devices_of(node, node_series.gpus if gpus is None else gpus, present=gpus is None),
        )
        return answer(result, query, file_name(node.name, "series"))


class GpuSeriesView(_TelemetryView):
    @extend_schema(
        parameters=[*SPAN, *METRICS], responses=response_schemas(SERIES), operation_id="gpus_series_retrieve"
    )
    def get(self, request: Request, uuid: str) -> HttpResponse:
        """Means and maxima of a GPU's metrics over time, on every node that it was in. `node` is its current
        node, and `host` holds the metrics of that node."""
        nodes = visible_nodes(self.workspace(request))
        gpu = Gpu.objects.select_related("node").filter(uuid=uuid, node__in=nodes.values("pk")).first()
        if gpu is None:
            raise Http404
        now = time.time()
        query = read_query(request.query_params, now, host=())
        gpu_series = series.read_gpu(
            gpu,
            nodes,
            gpu_metrics=query.gpu_metrics,
            start=query.start,
            end=query.end,
            points=query.points,
            now=now,
        )
        if query.host_metrics:
            machine = series.read_node(
                gpu.node,
                (),
                gpu_metrics=(),
                host_metrics=query.host_metrics,
                start=query.start,
                end=query.end,
                points=query.points,
                now=now,
            )
            gpu_series = dataclasses.replace(gpu_series, host=machine.host)
        return answer(
            SeriesAnswer(gpu.node.name, gpu_series, [_device(gpu)]), query, file_name(gpu.uuid, "series")
        )


class ClusterHeat(_TelemetryView):
    @extend_schema(
        parameters=[METRIC, *SPAN], responses=response_schemas(HEAT), operation_id="clusters_heat_retrieve"
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        """One metric of every GPU of a cluster over time."""
        workspace, now = self.workspace(request), time.time()
        if not clusters_of(workspace).filter(name=name).exists():
            raise Http404
        metric = read_metric(request.query_params)
        query = read_query(request.query_params, now, takes=("metric",), most_points=heat.MAX_POINTS)
        nodes = list(visible_nodes(workspace).filter(cluster__name=name, revoked_at=None))
        heat_map = heat.read_heat(
            nodes, metric, start=query.start, end=query.end, points=query.points, now=now
        )
        gpus = Gpu.objects.filter(node__in=[node.pk for node in nodes], present=True).select_related("node")
        means = [
            (gpu, heat_map.rows.get((gpu.node_id, gpu.uuid)))
            for gpu in gpus.order_by("node__name", "index", "uuid")
        ]
        if query.as_csv:
            rows = ((gpu.node.name, _device(gpu), mean) for gpu, mean in means)
            return heat_csv_response(file_name(name, metric), metric, heat_map.grid, rows)
        unknown = [None] * heat_map.grid.points
        rows_json = [
            {
                "node": gpu.node.name,
                "uuid": gpu.uuid,
                "index": gpu.index,
                "mean": unknown if mean is None else mean,
            }
            for gpu, mean in means
        ]
        span = {**span_json(heat_map.grid), "step_s": heat_map.grid.step_s, "times": heat_map.grid.times}
        return json_response({"metric": metric, **span, "rows": rows_json})


class MetricTables(_TelemetryView):
    @extend_schema(responses={(200, "application/json"): METRIC_TABLES})
    def get(self, request: Request) -> Response:  # noqa: ARG002 - DRF's signature
        """The metrics of GPUs and of hosts, each with its key, label and unit."""
        return Response({"gpu": _table(GPU_METRICS), "host": _table(HOST_METRICS)})


def answer(series_answer: SeriesAnswer, query: TelemetryQuery, name: str) -> HttpResponse:
    if query.as_csv:
        return csv_response(name, [series_answer], query.gpu_metrics, query.host_metrics)
    return json_response({**node_json(series_answer), **span_json(series_answer.series.grid)})


def devices_of(node: Node, uuids: Iterable[str], *, present: bool) -> list[GpuLabel]:
    """Returns the GPUs with these UUIDs, and with `present` also those that are in the node now, by index."""
    requested = set(uuids)
    rows = Gpu.objects.filter(uuid__in=requested)
    if present:
        rows |= Gpu.objects.filter(node=node, present=True)
    devices = [_device(gpu) for gpu in rows.order_by("index", "uuid")]
    unknown = requested - {device.uuid for device in devices}
    return [*devices, *(GpuLabel(uuid, None, "") for uuid in sorted(unknown))]


def _device(gpu: Gpu) -> GpuLabel:
    return GpuLabel(gpu.uuid, gpu.index, gpu.name)


def _gpus_of(node: Node, text: str | None) -> list[str] | None:
    if text is None:
        return None
    requested = list(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
    present = set(Gpu.objects.filter(node=node).values_list("uuid", flat=True))
    not_present = [uuid for uuid in requested if uuid not in present]
    if not_present:
        # A GPU that was moved to another node still has values on this one.
        recorded = present | set(
            TelemetryChunk.objects.filter(node=node, subject__in=not_present).values_list(
                "subject", flat=True
            )
        )
        unknown = [uuid for uuid in not_present if uuid not in recorded]
        if unknown:
            raise SpecError(
                "gpus",
                f"{unknown[0]!r} is not a GPU of {node.name}, which has "
                f"{', '.join(sorted(present)) or 'none'}",
            )
    return requested


def _table(metrics: Iterable[MetricField]) -> list[dict[str, str]]:
    return [{"key": metric.key, "label": metric.label, "unit": metric.unit} for metric in metrics]
