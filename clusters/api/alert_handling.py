"""The API of what people do with an alert: acknowledge and snooze."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.alerts import alert_handling, presenters
from clusters.alerts.alert_handling import SNOOZES, AlertNotFiring
from clusters.api.alerts import AlertSerializer
from clusters.models import Alert
from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.states import Role


class SnoozeSerializer(serializers.Serializer[Mapping[str, str]]):
    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg]
        # `for` is a word of Python, so it cannot be the name of an attribute.
        return {"for": serializers.ChoiceField(choices=list(SNOOZES), help_text="How long, from now on.")}


class _AlertView(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        if isinstance(exc, AlertNotFiring):
            exc = ApiProblem(409, str(exc))
        return super().handle_exception(exc)

    def do(self, request: Request, pk: int, act: Callable[[Alert, Principal], None]) -> Response:
        who = cast("PrincipalRequest", request).principal
        visible = presenters.visible(who.workspace)
        alert = visible.filter(pk=pk).first()
        if alert is None:
            raise Http404
        act(alert, who)
        (summary,) = presenters.summarize_all([visible.get(pk=pk)], who.workspace.pk)
        return Response(AlertSerializer(summary).data)


class AlertAcknowledge(_AlertView):
    @extend_schema(request=None, responses=AlertSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Record that you have seen the alert. Idempotent. For operators; for an alert about a run also for
        contributors of its workspace."""
        return self.do(request, pk, alert_handling.acknowledge)


class AlertSnooze(_AlertView):
    @extend_schema(request=SnoozeSerializer, responses=AlertSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Silence the alert for a time: no notifications, and it is not counted among the firing ones.
        Placement does not change. For operators; for an alert about a run also for contributors of its
        workspace."""

        def act(alert: Alert, who: Principal) -> None:
            alert_handling.must_handle(alert, who)  # checked before the body, so that others get 403
            serializer = SnoozeSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            alert_handling.snooze(alert, serializer.validated_data["for"], who)

        return self.do(request, pk, act)

    @extend_schema(responses={200: AlertSerializer})
    def delete(self, request: Request, pk: int) -> Response:
        """End the snooze before its time. Idempotent. For the same people."""
        return self.do(request, pk, alert_handling.end_snooze)
