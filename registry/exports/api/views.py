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
        exports = self._version(request, name, number).exports.select_related("run", "result", "created_by")
        return Response(ExportSerializer(exports, many=True).data)

    @extend_schema(request=ExportOptionsSerializer, responses={201: ExportSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Start an export of the version. It runs as a separate run."""
        version = self._version(request, name, number)
        serializer = ExportOptionsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        export = start(version, serializer.options(), cast("PrincipalRequest", request).principal)
        return Response(ExportSerializer(export).data, status=201)

    def _version(self, request: Request, name: str, number: int) -> ModelVersion:
        version = version_of(cast("PrincipalRequest", request).principal.workspace, name, str(number))
        if version is None:
            raise Http404
        return version
