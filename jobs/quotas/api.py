"""The API of quotas: members read those of their workspace, operators read and set those of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from django.core.exceptions import PermissionDenied
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.quotas import quota_admin
from jobs.quotas.quota_admin import MAX_LIMIT, QuotaRow
from jobs.quotas.quota_check import SCOPES
from workspaces.access import Principal, must_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import Workspace
from workspaces.states import Role

WORKSPACE = OpenApiParameter("workspace", str, description="The slug of another workspace, for operators.")


class QuotaSerializer(serializers.Serializer[QuotaRow | Sequence[QuotaRow]]):
    """A quota and what is used of it; null: no limit. One for each person has no use of its own."""

    scope = serializers.CharField(help_text=f"One of {', '.join(SCOPES)}; people: each person.")
    person = serializers.CharField(help_text="The user name; empty unless the scope is person.")
    gpus = serializers.IntegerField(source="balance.gpus", allow_null=True, help_text="At once.")
    gpu_hours = serializers.FloatField(
        source="balance.gpu_hours", allow_null=True, help_text="In a calendar month (UTC)."
    )
    waiting_runs = serializers.IntegerField(source="balance.waiting_runs", allow_null=True)
    disk_gib = serializers.FloatField(
        source="balance.disk_gib", allow_null=True, help_text="Of the files that the hub stores, in GiB."
    )
    gpus_held = serializers.IntegerField(source="balance.gpus_held")
    gpu_hours_used = serializers.FloatField(source="balance.gpu_hours_used", help_text="In this month.")
    runs_waiting = serializers.IntegerField(source="balance.runs_waiting")
    disk_bytes_used = serializers.IntegerField(
        source="balance.disk_bytes_used",
        help_text="As measured last, every five minutes; 0 without a limit of the disk.",
    )
    note = serializers.CharField(help_text="By what it is exceeded already; empty if it is not.")


class NewQuotaSerializer(serializers.Serializer[Mapping[str, object]]):
    """The limits of a quota; those that are missing or null are none. Without any limit it is removed."""

    scope = serializers.CharField(
        max_length=16, help_text=f"One of {', '.join(SCOPES)}; people: each person."
    )
    person = serializers.CharField(max_length=150, required=False, default="", allow_blank=True)
    gpus = serializers.IntegerField(min_value=0, max_value=MAX_LIMIT, required=False, allow_null=True)
    gpu_hours = serializers.FloatField(min_value=0, max_value=MAX_LIMIT, required=False, allow_null=True)
    waiting_runs = serializers.IntegerField(min_value=0, max_value=MAX_LIMIT, required=False, allow_null=True)
    disk_gib = serializers.FloatField(min_value=0, max_value=MAX_LIMIT, required=False, allow_null=True)

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError(
                {unknown[0]: f"is not a field of a quota; the fields are: {', '.join(self.fields)}"}
            )
        return attrs


class Quotas(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(operation_id="quotas_list", parameters=[WORKSPACE], responses=QuotaSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The quotas of the workspace. Of single persons, members see their own, owners and operators all."""
        who = _principal(request)
        return _answer(_workspace(request, who), who)

    @extend_schema(parameters=[WORKSPACE], request=NewQuotaSerializer, responses=QuotaSerializer(many=True))
    def put(self, request: Request) -> Response:
        """Set one quota of the workspace. Nothing that runs is stopped: `note` says what exceeds it already.
        For operators."""
        who = _principal(request)
        must_operate(who.user)
        workspace = _workspace(request, who)
        serializer = NewQuotaSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        limits = {name: values.get(name) for name in quota_admin.LIMITS}
        quota_admin.set_quota(workspace, values["scope"], values["person"], limits, who.user)
        return _answer(workspace, who)


def _principal(request: Request) -> Principal:
    return cast("PrincipalRequest", request).principal


def _workspace(request: Request, who: Principal) -> Workspace:
    slug = request.query_params.get("workspace", "").replace("\x00", "")
    if not slug or slug == who.workspace.slug:
        return who.workspace
    if not who.user.is_operator:
        raise PermissionDenied("Only operators see the quotas of other workspaces.")
    return get_object_or_404(Workspace, slug=slug)


def _answer(workspace: Workspace, who: Principal) -> Response:
    only = None if who.user.is_operator or who.may(Role.OWNER) else who.user
    return Response(QuotaSerializer(quota_admin.quota_rows(workspace, only), many=True).data)
