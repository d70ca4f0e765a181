"""The log system of a workspace, for its owners."""

from __future__ import annotations

from typing import Any, cast

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.log_shipping import targets, workspace_targets
from jobs.log_shipping.destinations import KINDS, DestinationError
from jobs.log_shipping.models import LogTarget
from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.states import Role


class LogTargetFieldsSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=list(KINDS))
    url = serializers.CharField(
        max_length=1000, help_text="The path of the protocol is added if it is not at the end of the address."
    )
    headers = serializers.CharField(
        max_length=4000,
        required=False,
        allow_blank=True,
        help_text="One `Name: value` a line. {secret:NAME} stands for a secret of the workspace.",
    )
    labels = serializers.CharField(
        max_length=1000,
        required=False,
        allow_blank=True,
        help_text="Added to every line: env=prod, site=north.",
    )
    ca = serializers.CharField(
        max_length=100_000,
        required=False,
        allow_blank=True,
        help_text="Certificate authorities in PEM, if those that the hub's machine trusts are not meant.",
    )


class LogTargetSerializer(LogTargetFieldsSerializer):
    """The log system of a workspace, and how it is doing."""

    state = serializers.SerializerMethodField(
        help_text="working, failing, or unused: nothing has arrived there yet."
    )
    since = serializers.DateTimeField(help_text="Attempts that began earlier are not shipped.")
    lines = serializers.IntegerField(help_text="Lines that have arrived there.")
    refused_lines = serializers.IntegerField(help_text="Lines that were left out because it refused them.")
    last_refusal = serializers.CharField()
    last_error = serializers.CharField()
    failing_since = serializers.DateTimeField(allow_null=True)
    behind_bytes = serializers.IntegerField(help_text="What waits, as of the last round.")
    behind_since = serializers.DateTimeField(allow_null=True)
    is_testing = serializers.SerializerMethodField(help_text="A test line is about to be sent.")
    test_result = serializers.CharField(help_text="What became of the last test line.")

    def get_state(self, target: LogTarget) -> str:
        return targets.state_of(target).word

    def get_is_testing(self, target: LogTarget) -> bool:
        return bool(target.test_by)


class _LogTargetView(APIView):
    asks_for_password = True
    permission_classes = [AtLeast(Role.OWNER)]

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def target(self, request: Request) -> LogTarget:
        target = workspace_targets.target_of(self.principal(request))
        if target is None:
            raise Http404
        return target

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        if isinstance(exc, DestinationError):
            exc = ApiProblem(400, f"{exc.field}: {exc.message}", [(exc.field, exc.message)])
        return super().handle_exception(exc)


class LogTargetDetail(_LogTargetView):
    @extend_schema(responses=LogTargetSerializer)
    def get(self, request: Request) -> Response:
        """The log system that gets the lines of the workspace's runs. For owners."""
        return Response(LogTargetSerializer(self.target(request)).data)

    @extend_schema(request=LogTargetFieldsSerializer, responses=LogTargetSerializer)
    def put(self, request: Request) -> Response:
        """Name the log system of the workspace; it gets the attempts that begin from now on. For owners."""
        serializer = LogTargetFieldsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = {"headers": "", "labels": "", "ca": "", **serializer.validated_data}
        workspace_targets.store_target(self.principal(request), fields)
        return Response(LogTargetSerializer(self.target(request)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request) -> Response:
        """Ship no more lines. For owners."""
        workspace_targets.remove_target(self.principal(request), self.target(request))
        return Response(status=204)


class LogTargetTest(_LogTargetView):
    @extend_schema(request=None, responses={202: LogTargetSerializer})
    def post(self, request: Request) -> Response:
        """Send a test line within seconds; `test_result` then shows the result. For owners."""
        workspace_targets.request_test(self.principal(request), self.target(request))
        return Response(LogTargetSerializer(self.target(request)).data, status=202)
