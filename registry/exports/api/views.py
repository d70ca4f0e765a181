from __future__ import annotations

from typing import cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.exports.api.serializers import ExportOptionsSerializer, ExportSerializer
from registry.exports.export_start import start
from registry.lookup import version_of
from registry.models import ModelVersion
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role


class ExportList(APIView):
    """Viewers read, contributors start."""

    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]

    @extend_schema(operation_id="model_exports_list", responses=ExportSerializer(many=True))
    def get(self, request: Request, name: str, number: int) -> Response:
        """The exports of a version, newest first."""
        found = self._version(request, name, number).exports.select_related("run", "result", "created_by")
        return Response(ExportSerializer(found, many=True).data)

    @extend_schema(request=ExportOptionsSerializer, responses={201: ExportSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Start one, as a run of its own."""
        version = self._version(request, name, number)
        told = ExportOptionsSerializer(data=request.data)
        told.is_valid(raise_exception=True)
        made = start(version, told.options(), cast("PrincipalRequest", request).principal)
        return Response(ExportSerializer(made).data, status=201)

    def _version(self, request: Request, name: str, number: int) -> ModelVersion:
        found = version_of(cast("PrincipalRequest", request).principal.workspace, name, str(number))
        if found is None:
            raise Http404
        return found
