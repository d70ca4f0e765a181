from __future__ import annotations

from typing import Any, cast

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from jobs.models import Run
from registry import aliases, deletion, model_metadata, stages
from registry.api import serializers
from registry.api.serializers import ModelSerializer, VersionSerializer
from registry.certificates import keys
from registry.errors import RegistryError
from registry.lookup import models_of
from registry.models import ModelVersion, RegisteredModel
from registry.registration import Origin, Words, add_version, outputs
from registry.sources import Asked, resolve
from tracking.callers import Caller
from workspaces.access import Principal, lacking
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role


class _RegistryView(APIView):
    """Viewers read, contributors also register, describe and move aliases; owners delete."""

    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def owner(self, request: Request) -> Principal:
        who = self.principal(request)
        if not who.may(Role.OWNER):
            raise PermissionDenied(lacking(who, Role.OWNER))
        return who

    def model(self, request: Request, name: str) -> RegisteredModel:
        found = models_of(self.principal(request).workspace).filter(name=name).first()
        if found is None:
            raise Http404
        return found

    def version(self, request: Request, name: str, number: int) -> ModelVersion:
        for version in self.model(request, name).versions.all():
            if version.number == number:
                return version
        raise Http404

    def told(self, request: Request, kind: type[Serializer[Any]]) -> dict[str, Any]:
        given = kind(data=request.data)
        given.is_valid(raise_exception=True)
        return dict(given.validated_data)


class ModelList(_RegistryView):
    @extend_schema(responses=ModelSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The workspace's models."""
        return Response(ModelSerializer(models_of(self.principal(request).workspace), many=True).data)

    @extend_schema(request=serializers.NewModelSerializer, responses={201: ModelSerializer})
    def post(self, request: Request) -> Response:
        """Make a model without versions; registering a version makes one too."""
        who, told = self.principal(request), self.told(request, serializers.NewModelSerializer)
        model = model_metadata.create_model(
            who.workspace, told["name"], who.user, description=told["description"], tags=told["tags"]
        )
        return Response(ModelSerializer(model).data, status=201)


class ModelDetail(_RegistryView):
    @extend_schema(responses=ModelSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One model by its name."""
        return Response(ModelSerializer(self.model(request, name)).data)

    @extend_schema(request=serializers.ModelChangeSerializer, responses=ModelSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Describe, tag, protect aliases of, or rename a model; the last two are for owners."""
        model, told = self.model(request, name), self.told(request, serializers.ModelChangeSerializer)
        owner = self.owner(request) if told.keys() & {"protected", "name"} else None
        with transaction.atomic():
            model_metadata.describe_and_tag(model, told.get("description"), told.get("tags", {}))
            if owner and "protected" in told:
                model_metadata.protect(model, told["protected"], owner.user)
            if owner and "name" in told:
                model_metadata.rename(model, told["name"], owner.user)
        return Response(ModelSerializer(self.model(request, model.name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a model with all versions; for owners."""
        deletion.delete_model(self.model(request, name), self.owner(request).user)
        return Response(status=204)


class VersionList(_RegistryView):
    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Its versions, newest first, with their files."""
        return Response(VersionSerializer(self.model(request, name).versions.all(), many=True).data)

    @extend_schema(request=serializers.RegisterSerializer, responses={201: VersionSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Register what a run has left or logged as the next version; a new name makes the model."""
        who, told = self.principal(request), self.told(request, serializers.RegisterSerializer)
        words = Words(
            model_metadata.checked_description(told["description"]), model_metadata.checked_tags(told["tags"])
        )
        version = add_version(who.workspace, name, self._origin(who, told), who.user, words)
        return Response(VersionSerializer(version).data, status=201)

    def _origin(self, who: Principal, told: dict[str, Any]) -> Origin:
        if "source" in told:
            return resolve(
                Caller(who.workspace, who.role, who.user), Asked(told["source"], told.get("run", ""))
            )
        if "run" not in told:
            raise RegistryError(
                "run", "is required: the id of the run that made it, with path; or give source instead"
            )
        run = Run.objects.for_workspace(who.workspace).filter(pk=told["run"]).first()
        if run is None:
            raise RegistryError(
                "run",
                "is not the id of a run of this workspace; find it on the run's page or at /api/v1/runs/",
            )
        return outputs(run, told["path"])


class VersionDetail(_RegistryView):
    @extend_schema(responses=VersionSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """One version of a model."""
        return Response(VersionSerializer(self.version(request, name, number)).data)

    @extend_schema(request=serializers.VersionChangeSerializer, responses=VersionSerializer)
    def patch(self, request: Request, name: str, number: int) -> Response:
        """Describe or tag a version, or move it to a stage."""
        who, version = self.principal(request), self.version(request, name, number)
        told = self.told(request, serializers.VersionChangeSerializer)
        with transaction.atomic():
            model_metadata.describe_and_tag(version, told.get("description"), told.get("tags", {}))
            if "stage" in told:
                stages.move(version, told["stage"], who.user, is_owner=who.may(Role.OWNER))
        return Response(VersionSerializer(self.version(request, name, number)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Delete a version with its aliases; for owners. Its number is not given again."""
        deletion.delete_version(self.version(request, name, number), self.owner(request).user)
        return Response(status=204)


class AliasDetail(_RegistryView):
    @extend_schema(request=serializers.AliasSerializer, responses=ModelSerializer)
    def put(self, request: Request, name: str, alias: str) -> Response:
        """Give the alias to a version; it moves there from wherever it was."""
        number, who = self.told(request, serializers.AliasSerializer)["version"], self.principal(request)
        aliases.set_alias(self.model(request, name), alias, number, who.user, is_owner=who.may(Role.OWNER))
        return Response(ModelSerializer(self.model(request, name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, alias: str) -> Response:
        """Take the alias away; the version stays."""
        who = self.principal(request)
        if not aliases.delete_alias(self.model(request, name), alias, who.user, is_owner=who.may(Role.OWNER)):
            raise Http404
        return Response(status=204)


class SigningKeys(_RegistryView):
    @extend_schema(responses=serializers.KeySerializer(many=True))
    def get(self, _: Request) -> Response:
        """The public keys of this TrainHub's birth certificates, the one that signs now first."""
        return Response(serializers.KeySerializer(keys.known(), many=True).data)
