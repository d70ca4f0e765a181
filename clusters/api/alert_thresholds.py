"""The API of the thresholds of alerts, for operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.alerts import thresholds
from clusters.alerts.thresholds import THRESHOLDS
from clusters.models import Cluster
from workspaces.access import must_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import User
from workspaces.states import Role

CLUSTER = OpenApiParameter("cluster", str, description="The name of a cluster; without it, all clusters.")


class ThresholdSerializer(serializers.Serializer[object]):
    name = serializers.CharField()
    kind = serializers.CharField(help_text="The rule whose threshold it is.")
    meaning = serializers.CharField(help_text="Such as: Free space below.")
    unit = serializers.CharField()
    value = serializers.FloatField(
        allow_null=True, help_text="The value that operators have set here; null if there is none."
    )
    default = serializers.FloatField(help_text="What holds while there is no value.")


class NewThresholdsSerializer(serializers.Serializer[Mapping[str, float | None]]):
    """Thresholds by name. null removes a value, so that the default holds."""

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]
        return {
            threshold.name: serializers.FloatField(
                required=False,
                allow_null=True,
                min_value=0,
                max_value=threshold.maximum,
                help_text=f"{threshold.kind}: {threshold.label} ({threshold.unit}); 0 switches the rule off.",
            )
            for threshold in THRESHOLDS
        }

    def validate(self, attrs: dict[str, float | None]) -> dict[str, float | None]:
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError(
                {unknown[0]: f"is not a threshold; the thresholds are: {', '.join(self.fields)}"}
            )
        return attrs


class AlertThresholds(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(
        operation_id="alert_thresholds_list",
        parameters=[CLUSTER],
        responses=ThresholdSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """All thresholds of alerts with their values. For operators."""
        _operator(request)
        return Response(_thresholds(_cluster(request)))

    @extend_schema(
        parameters=[CLUSTER], request=NewThresholdsSerializer, responses=ThresholdSerializer(many=True)
    )
    def patch(self, request: Request) -> Response:
        """Set the given thresholds; the others are kept. For operators."""
        who, cluster = _operator(request), _cluster(request)
        serializer = NewThresholdsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        thresholds.change(cluster, serializer.validated_data, who)
        return Response(_thresholds(cluster))


def _operator(request: Request) -> User:
    who = cast("PrincipalRequest", request).principal.user
    must_operate(who)
    return who


def _cluster(request: Request) -> Cluster | None:
    name = request.query_params.get("cluster", "").replace("\x00", "")
    cluster = Cluster.objects.filter(name=name, deleted_at=None).first()
    if name and cluster is None:
        raise Http404
    return cluster


def _thresholds(cluster: Cluster | None) -> list[dict[str, Any]]:
    values = thresholds.values_by_cluster().get(None if cluster is None else cluster.pk, {})
    inherited = thresholds.inherited(cluster)
    return [
        dict(
            ThresholdSerializer(
                {
                    "name": threshold.name,
                    "kind": threshold.kind,
                    "meaning": threshold.label,
                    "unit": threshold.unit,
                    "value": values.get(threshold.name),
                    "default": threshold.read(inherited),
                }
            ).data
        )
        for threshold in THRESHOLDS
    ]
