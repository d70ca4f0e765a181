"""The page System and its API."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, cast

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from trainhub.system_page.serializers import SystemSerializer
from trainhub.system_page.summary import system_summary
from workspaces.access import WorkspaceRequest, must_operate, operators_only
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role


@require_GET
@operators_only
def system(request: WorkspaceRequest) -> HttpResponse:
    is_fragment = "HX-Request" in request.headers
    template = "system/_system.html" if is_fragment else "system/system.html"
    return render(request, template, {"system": system_summary(timezone.now())})


class SystemView(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(responses=SystemSerializer)
    def get(self, request: Request) -> Response:
        """How the hub itself is doing: its processes, requests, periodic work, tasks and queues. For
        operators."""
        must_operate(cast("PrincipalRequest", request).principal.user)
        summary = _without_infinity(asdict(system_summary(timezone.now())))
        return Response(SystemSerializer(summary).data)


def _without_infinity(value: Any) -> Any:
    """Returns the same with None for infinite numbers, which JSON does not know."""
    if isinstance(value, dict):
        return {name: _without_infinity(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_infinity(part) for part in value]
    return None if isinstance(value, float) and math.isinf(value) else value
