"""The API of datastores."""

from __future__ import annotations

from typing import Any, cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from datastores import changes
from datastores.folder_path import MAX_LENGTH
from datastores.models import Datastore
from datastores.states import DatastoreKind
from trainhub_launch.data.shares import OPTIONS_HINT
from trainhub_launch.data.stores import SignIn
from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role

KINDS = f"Where its data lies: {', '.join(DatastoreKind)}."


def _field(about: str) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, max_length=MAX_LENGTH, help_text=about)


class PlaceSerializer(serializers.Serializer[Any]):
    """Where the data lies. Each kind has some of these fields."""

    path = _field(
        "Of a folder its absolute path on the nodes; otherwise what stands before each path below it."
    )
    host = _field("Of NFS: the name or address of the file server.")
    export = _field("Of NFS: the absolute path that the server exports.")
    options = _field(f"Of NFS, separated by commas: {OPTIONS_HINT}.")
    # DRF takes fields out of the class, so its own attribute of this name stays.
    read_only = serializers.BooleanField(  # type: ignore[assignment]
        required=False, help_text="Of NFS: whether nobody may write into it; true without it."
    )
    bucket = _field("Of S3.")
    endpoint = _field("Of S3 or Azure Blob: the address of another service than that of the provider.")
    region = _field("Of S3.")
    access_key_id = _field("Of S3: the public part of the access key.")
    account = _field("Of Azure Blob: the storage account.")
    container = _field("Of Azure Blob.")
    url = _field("Of HTTP: the address of the folder above the files.")
    sign_in = _field(f"How the store is read: {', '.join(SignIn)}.")
    secret = _field(
        "The name of a secret of the workspace: the secret part of an access key; a shared access signature "
        "or an account key; NAME:PASSWORD or a token of a web server."
    )


class DatastoreSerializer(PlaceSerializer):
    name = serializers.CharField()
    kind = serializers.CharField(help_text=KINDS)
    description = serializers.CharField()
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()

    def to_representation(self, instance: Datastore) -> dict[str, Any]:
        place = changes.current_fields(instance)
        return {
            "name": instance.name,
            "kind": instance.kind,
            **place,
            **({"read_only": place["read_only"] != "false"} if "read_only" in place else {}),
            "description": instance.description,
            "created_by": str(instance.created_by) if instance.created_by else None,
            "created_at": instance.created_at,
        }


class DatastoreChangeSerializer(PlaceSerializer):
    description = serializers.CharField(required=False, allow_blank=True, max_length=changes.MAX_DESCRIPTION)

    def place(self) -> dict[str, str]:
        """Returns the fields of the place that were sent."""
        return {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in self.validated_data.items()
            if name in PlaceSerializer().fields
        }


class NewDatastoreSerializer(DatastoreChangeSerializer):
    name = serializers.CharField(max_length=100)
    kind = serializers.CharField(help_text=KINDS)


class _DatastoreView(APIView):
    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def datastores(self, request: Request) -> Any:
        return Datastore.objects.filter(workspace=self.principal(request).workspace).select_related(
            "created_by"
        )


class DatastoreList(_DatastoreView):
    @extend_schema(operation_id="datastores_list", responses=DatastoreSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The datastores of the workspace: named places from which runs read their data."""
        return Response(DatastoreSerializer(self.datastores(request), many=True).data)

    @extend_schema(request=NewDatastoreSerializer, responses={201: DatastoreSerializer})
    def post(self, request: Request) -> Response:
        """Name a place for data: a folder that the nodes have, a share that they mount, or a store from which
        they download it."""
        body = NewDatastoreSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        data = body.validated_data
        datastore = changes.create(
            self.principal(request), data["name"], data["kind"], body.place(), data.get("description", "")
        )
        return Response(DatastoreSerializer(datastore).data, status=201)


class DatastoreDetail(_DatastoreView):
    @extend_schema(responses=DatastoreSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One datastore."""
        return Response(DatastoreSerializer(self._datastore(request, name)).data)

    @extend_schema(request=DatastoreChangeSerializer, responses=DatastoreSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change the place or the description. Attempts that have begun keep the earlier place."""
        body = DatastoreChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        datastore = self._datastore(request, name)
        changes.change(
            self.principal(request), datastore, body.place(), body.validated_data.get("description")
        )
        return Response(DatastoreSerializer(datastore).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a datastore. Its data stays where it is. Refused while a run that is not over reads it."""
        changes.delete(self.principal(request), self._datastore(request, name))
        return Response(status=204)

    def _datastore(self, request: Request, name: str) -> Datastore:
        datastore: Datastore = get_object_or_404(self.datastores(request), name=name)
        return datastore
