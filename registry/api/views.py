from __future__ import annotations

from typing import Any, cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from jobs.models import Run
from registry.aliases import delete_alias, set_alias
from registry.api.serializers import AliasSerializer, ModelSerializer, RegisterSerializer, VersionSerializer
from registry.errors import RegistryError
from registry.lookup import models_of
from registry.models import RegisteredModel
from registry.registering import check_name, register
from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role


class _RegistryView(APIView):
    """Viewers read, contributors also register and move aliases."""

    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def model(self, request: Request, name: str) -> RegisteredModel:
        found = models_of(self.principal(request).workspace).filter(name=name).first()
        if found is None:
            raise Http404
        return found

    def told(self, request: Request, kind: type[Serializer[Any]]) -> dict[str, Any]:
        given = kind(data=request.data)
        given.is_valid(raise_exception=True)
        return dict(given.validated_data)


class ModelList(_RegistryView):
    @extend_schema(responses=ModelSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The workspace's models."""
        return Response(ModelSerializer(models_of(self.principal(request).workspace), many=True).data)


class ModelDetail(_RegistryView):
    @extend_schema(responses=ModelSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One model by its name."""
        return Response(ModelSerializer(self.model(request, name)).data)


class VersionList(_RegistryView):
    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Its versions, newest first, with their files."""
        return Response(VersionSerializer(self.model(request, name).versions.all(), many=True).data)

    @extend_schema(request=RegisterSerializer, responses={201: VersionSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Register an output of a run as the next version; a new name makes the model."""
        who = self.principal(request)
        told = self.told(request, RegisterSerializer)
        run = Run.objects.of(who.workspace).filter(pk=told["run"]).first()
        if run is None:
            raise RegistryError("run", "is not the id of a run of this workspace; find it on the run's page or at /api/v1/runs/")
        version = register(who.workspace, check_name(name), run, told["path"], who.user, description=told["description"])
        return Response(VersionSerializer(version).data, status=201)


class VersionDetail(_RegistryView):
    @extend_schema(responses=VersionSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """One version of a model."""
        for version in self.model(request, name).versions.all():
            if version.number == number:
                return Response(VersionSerializer(version).data)
        raise Http404


class AliasDetail(_RegistryView):
    @extend_schema(request=AliasSerializer, responses=ModelSerializer)
    def put(self, request: Request, name: str, alias: str) -> Response:
        """Give the alias to a version; it moves there from wherever it was."""
        number = self.told(request, AliasSerializer)["version"]
        set_alias(self.model(request, name), alias, number, self.principal(request).user)
        return Response(ModelSerializer(self.model(request, name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, alias: str) -> Response:
        """Take the alias away; the version stays."""
        if not delete_alias(self.model(request, name), alias, self.principal(request).user):
            raise Http404
        return Response(status=204)
