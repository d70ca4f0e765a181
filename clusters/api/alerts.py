"""The API of alerts on the nodes that a workspace may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.alerts import presenters
from clusters.models import Alert
from trainhub_launch.errors import SpecError
from trainhub_launch.severity import SEVERITIES
from workspaces.api.cursor_pages import CursorPages
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role

PARAMETERS = [
    OpenApiParameter("state", str, enum=presenters.VISIBLE_STATES),
    OpenApiParameter("kind", str, description="Only alerts of this rule.", enum=list(presenters.KINDS)),
    OpenApiParameter("severity", str, enum=SEVERITIES),
    OpenApiParameter("node", str, description="Only alerts on the node with this name."),
    OpenApiParameter(
        "run", str, description="Only alerts about the run with this id, which must belong to this workspace."
    ),
]
CHOICES = {"state": presenters.VISIBLE_STATES, "kind": tuple(presenters.KINDS), "severity": SEVERITIES}


class AlertSerializer(serializers.Serializer[presenters.AlertSummary | Sequence[presenters.AlertSummary]]):
    """An alert as this workspace may see it. `run` and `run_title` are empty for a run of another
    workspace."""

    id = serializers.IntegerField(source="alert.pk")
    kind = serializers.CharField(source="alert.kind")
    title = serializers.CharField()
    severity = serializers.ChoiceField(source="alert.severity", choices=list(SEVERITIES))
    state = serializers.ChoiceField(source="alert.state", choices=list(presenters.VISIBLE_STATES))
    sentence = serializers.CharField(
        help_text="What happened and where, which run holds the GPU, and what to do."
    )
    node = serializers.CharField(source="alert.node.name")
    cluster = serializers.CharField(source="alert.node.cluster.name")
    gpu = serializers.SerializerMethodField(help_text="The GPU's UUID; empty for an alert about a node.")
    gpu_index = serializers.IntegerField(source="gpu.index", allow_null=True, default=None)
    run = serializers.CharField()
    run_title = serializers.CharField(
        help_text="The run that holds the GPU or that the alert is about, such as 'run 41'; may be empty."
    )
    since = serializers.DateTimeField(help_text="When the condition was first seen.")
    fired_at = serializers.DateTimeField(source="alert.fired_at")
    cleared_at = serializers.DateTimeField(source="alert.cleared_at", allow_null=True)
    acknowledged_at = serializers.DateTimeField(source="alert.acknowledged_at", allow_null=True)
    acknowledged_by = serializers.CharField(source="alert.acknowledged_by", help_text="Who has seen it.")
    snoozed_until = serializers.DateTimeField(
        source="alert.snoozed_until",
        allow_null=True,
        help_text="Until then nobody is notified of it, and it is not counted among the firing alerts.",
    )
    snoozed_by = serializers.CharField(source="alert.snoozed_by")

    def get_gpu(self, line: presenters.AlertSummary) -> str:
        return line.gpu.uuid if line.gpu is not None else str(line.alert.facts.get("gpu", ""))


class AlertPageSerializer(serializers.Serializer[object]):
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)
    results = AlertSerializer(many=True)


class AlertPages(CursorPages):
    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering = ("-id",)


class AlertList(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(operation_id="alerts_list", parameters=PARAMETERS, responses=AlertPageSerializer)
    def get(self, request: Request) -> Response:
        """Firing and cleared alerts, the latest first."""
        workspace = cast("PrincipalRequest", request).principal.workspace
        pages = AlertPages()
        page = pages.paginate_queryset(
            _selected(presenters.visible(workspace, _run(request)), request), request, view=self
        )
        return pages.get_paginated_response(
            AlertSerializer(presenters.summarize_all(page or [], workspace.pk), many=True).data
        )


def _run(request: Request) -> str:
    return _query_value(request, "run")


def _selected(alerts: QuerySet[Alert], request: Request) -> QuerySet[Alert]:
    allowed = {parameter.name for parameter in PARAMETERS} | {"cursor", AlertPages.page_size_query_param}
    for name in request.query_params:
        if name not in allowed:
            raise SpecError(name, f"is not a known parameter; known parameters: {', '.join(sorted(allowed))}")
    for name, choices in CHOICES.items():
        value = _query_value(request, name)
        if value and value not in choices:
            raise SpecError(name, f"must be one of {', '.join(choices)}")
        alerts = alerts.filter(**{name: value}) if value else alerts
    node = _query_value(request, "node")
    return alerts.filter(node__name=node) if node else alerts


def _query_value(request: Request, name: str) -> str:
    # PostgreSQL refuses texts with NUL, which would end in an error 500.
    return str(request.query_params.get(name, "")).replace("\x00", "")[:100]
