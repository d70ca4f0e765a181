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
from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role

KINDS = f"Where its data lies: {', '.join(DatastoreKind)}."


class DatastoreSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField(help_text=KINDS)
    path = serializers.CharField(help_text="The absolute path of the folder on the nodes.")
    description = serializers.CharField()
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class DatastoreChangeSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(
        required=False, max_length=MAX_LENGTH, help_text="The absolute path of a folder that the nodes have."
    )
    description = serializers.CharField(required=False, allow_blank=True, max_length=changes.MAX_DESCRIPTION)


class NewDatastoreSerializer(DatastoreChangeSerializer):
    name = serializers.CharField(max_length=100)
    kind = serializers.CharField(help_text=KINDS)
    path = serializers.CharField(
        max_length=MAX_LENGTH, help_text="The absolute path of a folder that the nodes have."
    )


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
        """Name a place for data: a folder that the nodes have, such as one on a shared file system."""
        body = NewDatastoreSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        datastore = changes.create(self.principal(request), **body.validated_data)
        return Response(DatastoreSerializer(datastore).data, status=201)


class DatastoreDetail(_DatastoreView):
    @extend_schema(responses=DatastoreSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One datastore."""
        return Response(DatastoreSerializer(self._datastore(request, name)).data)

    @extend_schema(request=DatastoreChangeSerializer, responses=DatastoreSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change the path or the description. Attempts that have begun keep the earlier path."""
        body = DatastoreChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        datastore = self._datastore(request, name)
        changes.change(self.principal(request), datastore, **body.validated_data)
        return Response(DatastoreSerializer(datastore).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a datastore. Its data stays where it is. Refused while a run that is not over reads it."""
        changes.delete(self.principal(request), self._datastore(request, name))
        return Response(status=204)

    def _datastore(self, request: Request, name: str) -> Datastore:
        datastore: Datastore = get_object_or_404(self.datastores(request), name=name)
        return datastore
