"""Numbers over time: of a node, of a GPU, of a cluster's GPUs at a glance; and which metrics there are."""

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
from trainhub_launch.metrics import GPU_METRICS, HOST_METRICS, Metric
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import Workspace
from workspaces.states import Role

GPUS = OpenApiParameter("gpus", str, description="UUIDs, comma-separated; all of the node's unless named.")
METRIC = OpenApiParameter(
    "metric", str, description="One of the GPUs' metrics; utilization_pct unless named."
)


class _TelemetryView(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    def workspace(self, request: Request) -> Workspace:
        return cast("PrincipalRequest", request).principal.workspace


class NodeSeriesView(_TelemetryView):
    @extend_schema(
        parameters=[*SPAN, *METRICS, GPUS], responses=response_schemas(SERIES), operation_id="nodes_series_retrieve"
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        """What a node and its GPUs measured: means and maxima over time, gaps as null."""
        node = visible_nodes(self.workspace(request)).filter(name=name).first()
        if node is None:
            raise Http404
        now = time.time()
        asked = read_query(request.query_params, now, takes=("metrics", "host", "gpus"))
        gpus = _gpus_of(node, request.query_params.get("gpus"))
        found = series.read(
            node,
            gpus,
            gpu_metrics=asked.gpu_metrics,
            host_metrics=asked.host_metrics,
            start=asked.start,
            end=asked.end,
            points=asked.points,
            now=now,
        )
        told = SeriesAnswer(
            node.name, found, devices_of(node, found.gpus if gpus is None else gpus, present=gpus is None)
        )
        return answer(told, asked, file_name(node.name, "series"))


class GpuSeriesView(_TelemetryView):
    @extend_schema(
        parameters=[*SPAN, *METRICS], responses=response_schemas(SERIES), operation_id="gpus_series_retrieve"
    )
    def get(self, request: Request, uuid: str) -> HttpResponse:
        """What a GPU measured, on whichever node it was; `node` is the one it is in now, and `host` that
        one's numbers."""
        nodes = visible_nodes(self.workspace(request))
        gpu = Gpu.objects.select_related("node").filter(uuid=uuid, node__in=nodes.values("pk")).first()
        if gpu is None:
            raise Http404
        now = time.time()
        asked = read_query(request.query_params, now, host=())
        found = series.read_gpu(
            gpu,
            nodes,
            gpu_metrics=asked.gpu_metrics,
            start=asked.start,
            end=asked.end,
            points=asked.points,
            now=now,
        )
        if asked.host_metrics:
            machine = series.read(
                gpu.node,
                (),
                gpu_metrics=(),
                host_metrics=asked.host_metrics,
                start=asked.start,
                end=asked.end,
                points=asked.points,
                now=now,
            )
            found = dataclasses.replace(found, host=machine.host)
        return answer(SeriesAnswer(gpu.node.name, found, [_device(gpu)]), asked, file_name(gpu.uuid, "series"))


class ClusterHeat(_TelemetryView):
    @extend_schema(parameters=[METRIC, *SPAN], responses=response_schemas(HEAT), operation_id="clusters_heat_retrieve")
    def get(self, request: Request, name: str) -> HttpResponse:
        """One metric of every GPU of a cluster over time."""
        workspace, now = self.workspace(request), time.time()
        if not clusters_of(workspace).filter(name=name).exists():
            raise Http404
        metric = read_metric(request.query_params)
        asked = read_query(request.query_params, now, takes=("metric",), most_points=heat.MAX_POINTS)
        nodes = list(visible_nodes(workspace).filter(cluster__name=name, revoked_at=None))
        found = heat.heat(nodes, metric, start=asked.start, end=asked.end, points=asked.points, now=now)
        gpus = Gpu.objects.filter(node__in=[node.pk for node in nodes], present=True).select_related("node")
        told = [
            (gpu, found.rows.get((gpu.node_id, gpu.uuid)))
            for gpu in gpus.order_by("node__name", "index", "uuid")
        ]
        if asked.as_csv:
            rows = ((gpu.node.name, _device(gpu), mean) for gpu, mean in told)
            return heat_csv_response(file_name(name, metric), metric, found.grid, rows)
        unknown = [None] * found.grid.points
        listed = [
            {
                "node": gpu.node.name,
                "uuid": gpu.uuid,
                "index": gpu.index,
                "mean": unknown if mean is None else mean,
            }
            for gpu, mean in told
        ]
        span = {**span_json(found.grid), "step_s": found.grid.step_s, "times": found.grid.times}
        return json_response({"metric": metric, **span, "rows": listed})


class MetricTables(_TelemetryView):
    @extend_schema(responses={(200, "application/json"): METRIC_TABLES})
    def get(self, request: Request) -> Response:  # noqa: ARG002 - DRF's signature
        """The metrics of GPUs and of machines: how they are asked for, what they are called, and their
        unit."""
        return Response({"gpu": _table(GPU_METRICS), "host": _table(HOST_METRICS)})


def answer(told: SeriesAnswer, asked: TelemetryQuery, name: str) -> HttpResponse:
    if asked.as_csv:
        return csv_response(name, [told], asked.gpu_metrics, asked.host_metrics)
    return json_response({**node_json(told), **span_json(told.series.grid)})


def devices_of(node: Node, uuids: Iterable[str], *, present: bool) -> list[GpuLabel]:
    """The GPUs of these UUIDs, and with `present` those that are in the node now, as they are numbered
    there."""
    wanted = set(uuids)
    rows = Gpu.objects.filter(uuid__in=wanted)
    if present:
        rows |= Gpu.objects.filter(node=node, present=True)
    found = [_device(gpu) for gpu in rows.order_by("index", "uuid")]
    unknown = wanted - {device.uuid for device in found}
    return [*found, *(GpuLabel(uuid, None, "") for uuid in sorted(unknown))]


def _device(gpu: Gpu) -> GpuLabel:
    return GpuLabel(gpu.uuid, gpu.index, gpu.name)


def _gpus_of(node: Node, text: str | None) -> list[str] | None:
    if text is None:
        return None
    wanted = list(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
    present = set(Gpu.objects.filter(node=node).values_list("uuid", flat=True))
    strange = [uuid for uuid in wanted if uuid not in present]
    if strange:
        # One that was moved elsewhere has left its numbers here.
        known = present | set(
            TelemetryChunk.objects.filter(node=node, subject__in=strange).values_list("subject", flat=True)
        )
        unknown = [uuid for uuid in strange if uuid not in known]
        if unknown:
            raise SpecError(
                "gpus",
                f"{unknown[0]!r} is no GPU of {node.name}, which has {', '.join(sorted(present)) or 'none'}",
            )
    return wanted


def _table(metrics: Iterable[Metric]) -> list[dict[str, str]]:
    return [{"key": metric.key, "label": metric.label, "unit": metric.unit} for metric in metrics]
