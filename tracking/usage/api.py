"""API for GPU-hours, node-hours and energy, as JSON or CSV."""

from __future__ import annotations

from datetime import date

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base import JobsView
from tracking.usage import usage_report
from tracking.usage.months import parse_month
from tracking.usage.table import csv_text
from trainhub_launch.errors import SpecError

PARAMETERS = [
    OpenApiParameter(
        "from", str, description="The first month (UTC), such as 2026-01; all months by default."
    ),
    OpenApiParameter("to", str, description="The last month (UTC), inclusive; all months by default."),
    OpenApiParameter(
        "by", str, description="The grouping of the totals; `user` by default.", enum=list(usage_report.BY)
    ),
    OpenApiParameter(
        "as",
        str,
        description="The format of the response: `json` (the default), or `csv` for spreadsheets.",
        enum=["json", "csv"],
    ),
]


class LineSerializer(serializers.Serializer[object]):
    name = serializers.CharField(
        help_text="The user, experiment, cluster, month or run number that the totals are for."
    )
    title = serializers.CharField(
        help_text="The run's name if the grouping is by run and the run still exists; otherwise empty."
    )
    gpu_hours = serializers.FloatField(
        help_text="Hours of allocated GPUs, summed over the GPUs, from placement to release."
    )
    node_hours = serializers.FloatField(help_text="Hours of nodes with an allocation, summed over the nodes.")
    energy_wh = serializers.FloatField(
        allow_null=True,
        help_text="The measured energy of the GPUs in watt-hours; null if there are no measurements.",
    )
    measured_gpu_hours = serializers.FloatField(help_text="The GPU-hours that `energy_wh` covers.")
    runs = serializers.IntegerField()


class UsageSerializer(serializers.Serializer[object]):
    by = serializers.CharField()
    results = LineSerializer(
        many=True,
        help_text="The totals: months in chronological order, other groups by usage, the largest first.",
    )
    total = LineSerializer()


class UsageView(JobsView):
    @extend_schema(
        parameters=PARAMETERS,
        responses={(200, "application/json"): UsageSerializer, (200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> Response | HttpResponse:
        """Usage of the workspace's runs, including deleted ones."""
        params = request.query_params
        for name in params:
            if name not in (allowed := [parameter.name for parameter in PARAMETERS]):
                raise SpecError(name, f"is not a known parameter; known parameters: {', '.join(allowed)}")
        by = _one_of(params.get("by", "user"), "by", list(usage_report.BY))
        kind = _one_of(params.get("as", "json"), "as", ["json", "csv"])
        entries = usage_report.entries(
            self.principal(request).workspace, _month(request, "from"), _month(request, "to")
        )
        lines = usage_report.usage_lines(entries, by)
        if kind == "csv":
            headers = {"Content-Disposition": f'attachment; filename="usage-{by}.csv"'}
            return HttpResponse(csv_text(by, lines), content_type="text/csv; charset=utf-8", headers=headers)
        return Response(
            UsageSerializer({"by": by, "results": lines, "total": usage_report.total(entries)}).data
        )


def _month(request: Request, name: str) -> date | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    month = parse_month(text)
    if month is None:
        raise SpecError(name, "must be a month such as 2026-07")
    return month


def _one_of(value: str, name: str, allowed: list[str]) -> str:
    if value not in allowed:
        raise SpecError(name, f"must be one of {', '.join(allowed)}")
    return value
