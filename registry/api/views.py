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
from registry.named_files import uploaded_origin
from registry.registration import Origin, Words, add_version, outputs
from registry.sources import SourceRequest, resolve
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
        model = models_of(self.principal(request).workspace).filter(name=name).first()
        if model is None:
            raise Http404
        return model

    def version(self, request: Request, name: str, number: int) -> ModelVersion:
        for version in self.model(request, name).versions.all():
            if version.number == number:
                return version
        raise Http404

    def validated(self, request: Request, kind: type[Serializer[object]]) -> dict[str, Any]:
        serializer = kind(data=request.data)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)


class ModelList(_RegistryView):
    @extend_schema(responses=ModelSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The workspace's models."""
        return Response(ModelSerializer(models_of(self.principal(request).workspace), many=True).data)

    @extend_schema(request=serializers.NewModelSerializer, responses={201: ModelSerializer})
    def post(self, request: Request) -> Response:
        """Create a model without versions. Registering a version under a new name also creates the model."""
        who, fields = self.principal(request), self.validated(request, serializers.NewModelSerializer)
        model = model_metadata.create_model(
            who.workspace, fields["name"], who.user, description=fields["description"], tags=fields["tags"]
        )
        return Response(ModelSerializer(model).data, status=201)


class ModelDetail(_RegistryView):
    @extend_schema(responses=ModelSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One model by its name."""
        return Response(ModelSerializer(self.model(request, name)).data)

    @extend_schema(request=serializers.ModelChangeSerializer, responses=ModelSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change a model's description, tags, protected aliases or name. Only owners may change the last
        two."""
        model, fields = self.model(request, name), self.validated(request, serializers.ModelChangeSerializer)
        owner = self.owner(request) if fields.keys() & {"protected", "name"} else None
        with transaction.atomic():
            model_metadata.describe_and_tag(model, fields.get("description"), fields.get("tags", {}))
            if owner and "protected" in fields:
                model_metadata.protect(model, fields["protected"], owner.user)
            if owner and "name" in fields:
                model_metadata.rename(model, fields["name"], owner.user)
        return Response(ModelSerializer(self.model(request, model.name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a model with all its versions. For owners."""
        deletion.delete_model(self.model(request, name), self.owner(request).user)
        return Response(status=204)


class VersionList(_RegistryView):
    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The versions of a model with their files, newest first."""
        return Response(VersionSerializer(self.model(request, name).versions.all(), many=True).data)

    @extend_schema(request=serializers.RegisterSerializer, responses={201: VersionSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Register files that a run left or logged, or that you have sent before, as the model's next
        version. A new name creates the model."""
        who, fields = self.principal(request), self.validated(request, serializers.RegisterSerializer)
        words = Words(
            model_metadata.checked_description(fields["description"]),
            model_metadata.checked_tags(fields["tags"]),
        )
        version = add_version(who.workspace, name, self._origin(who, fields), who.user, words)
        return Response(VersionSerializer(version).data, status=201)

    def _origin(self, who: Principal, fields: dict[str, Any]) -> Origin:
        if "files" in fields:
            if fields.keys() & {"run", "source"}:
                raise RegistryError("files", "cannot stand beside run or source; give one of them")
            return uploaded_origin(who, fields["files"])
        if "source" in fields:
            return resolve(
                Caller(who.workspace, who.role, who.user),
                SourceRequest(fields["source"], fields.get("run", "")),
            )
        if "run" not in fields:
            raise RegistryError(
                "run",
                "is required: the id of the run that made it, with path; or give source or files instead",
            )
        run = Run.objects.for_workspace(who.workspace).filter(pk=fields["run"]).first()
        if run is None:
            raise RegistryError(
                "run",
                "is not the id of a run of this workspace; find it on the run's page or at /api/v1/runs/",
            )
        return outputs(run, fields["path"])


class VersionDetail(_RegistryView):
    @extend_schema(responses=VersionSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """One version of a model."""
        return Response(VersionSerializer(self.version(request, name, number)).data)

    @extend_schema(request=serializers.VersionChangeSerializer, responses=VersionSerializer)
    def patch(self, request: Request, name: str, number: int) -> Response:
        """Change a version's description, tags or stage."""
        who, version = self.principal(request), self.version(request, name, number)
        fields = self.validated(request, serializers.VersionChangeSerializer)
        with transaction.atomic():
            model_metadata.describe_and_tag(version, fields.get("description"), fields.get("tags", {}))
            if "stage" in fields:
                stages.move(version, fields["stage"], who.user, is_owner=who.may(Role.OWNER))
        return Response(VersionSerializer(self.version(request, name, number)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Delete a version with its aliases. For owners. Its number is not used again."""
        deletion.delete_version(self.version(request, name, number), self.owner(request).user)
        return Response(status=204)


class AliasDetail(_RegistryView):
    @extend_schema(request=serializers.AliasSerializer, responses=ModelSerializer)
    def put(self, request: Request, name: str, alias: str) -> Response:
        """Assign the alias to a version. If another version of the model has it, it moves."""
        number, who = self.validated(request, serializers.AliasSerializer)["version"], self.principal(request)
        aliases.set_alias(self.model(request, name), alias, number, who.user, is_owner=who.may(Role.OWNER))
        return Response(ModelSerializer(self.model(request, name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, alias: str) -> Response:
        """Remove an alias. The version is kept."""
        who = self.principal(request)
        if not aliases.delete_alias(self.model(request, name), alias, who.user, is_owner=who.may(Role.OWNER)):
            raise Http404
        return Response(status=204)


class SigningKeys(_RegistryView):
    @extend_schema(responses=serializers.KeySerializer(many=True))
    def get(self, _: Request) -> Response:
        """The public keys that verify birth certificates of this TrainHub; the current signing key is
        first."""
        return Response(serializers.KeySerializer(keys.public_keys(), many=True).data)
