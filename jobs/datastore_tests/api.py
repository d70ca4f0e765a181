"""The API of tests of datastores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from datastores.models import Datastore, DatastoreTest
from datastores.testing.states import UNFINISHED, ProbeState
from jobs.datastore_tests.requests import MAX_NODES, begin_test, cancel_test
from jobs.datastore_tests.rows import ProbeRow, newest_test, rows_of
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role


class ProbeRowSerializer(serializers.Serializer[Any]):
    node = serializers.CharField(allow_null=True, help_text="The name of the node; null for the hub.")
    state = serializers.ChoiceField(choices=[state.value for state in ProbeState])
    reason = serializers.CharField(
        help_text="Why it failed, with the remedy, or why there is nothing to test."
    )
    note = serializers.CharField(help_text="What else is to be said of what was read.")
    files = serializers.IntegerField(allow_null=True, help_text="How many files were begun.")
    bytes = serializers.IntegerField(allow_null=True, help_text="How many bytes were read.")
    seconds = serializers.FloatField(allow_null=True, help_text="In how many seconds.")
    bytes_per_second = serializers.FloatField(allow_null=True)
    log = serializers.SerializerMethodField(help_text="The address of the node's log; null for the hub.")

    def get_log(self, row: ProbeRow) -> str | None:
        return f"/api/v1/data-orders/{row.order}/log" if row.order else None


class DatastoreTestSerializer(serializers.Serializer[DatastoreTest]):
    datastore = serializers.CharField(source="datastore.name")
    path = serializers.CharField(help_text="What is read below the datastore; empty for all of it.")
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()
    is_over = serializers.SerializerMethodField(
        help_text="Whether every machine has said what it has to say."
    )
    left_out = serializers.IntegerField(
        help_text=f"Nodes that were too many: {MAX_NODES} are tested at once."
    )
    results = serializers.SerializerMethodField(help_text="Of the hub, and then of the nodes by name.")

    def get_is_over(self, test: DatastoreTest) -> bool:
        return not any(row.state in UNFINISHED for row in rows_of(test))

    @extend_schema_field(ProbeRowSerializer(many=True))
    def get_results(self, test: DatastoreTest) -> list[object]:
        return list(ProbeRowSerializer(rows_of(test), many=True).data)


class DatastoreTestRequestSerializer(serializers.Serializer[Any]):
    nodes = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text=f"The nodes that read it, at most {MAX_NODES}; by default all that the workspace may use.",
    )
    path = serializers.CharField(
        required=False, help_text="A file or folder below the datastore. A web server needs that of a file."
    )


def _principal(request: Request) -> Principal:
    return cast("PrincipalRequest", request).principal


class _DatastoreTestView(APIView):
    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]

    def datastore(self, request: Request, name: str) -> Datastore:
        rows = Datastore.objects.filter(workspace=_principal(request).workspace)
        datastore: Datastore = get_object_or_404(rows.select_related("workspace"), name=name)
        return datastore


class DatastoreTestDetail(_DatastoreTestView):
    @extend_schema(responses=DatastoreTestSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The newest test of the datastore, as far as it is; 404 before the first."""
        test = newest_test(self.datastore(request, name))
        if test is None:
            raise Http404
        return Response(DatastoreTestSerializer(test).data)

    @extend_schema(request=DatastoreTestRequestSerializer, responses={202: DatastoreTestSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Test from the hub and from nodes whether the datastore can be read, and how fast. The answer is the
        test that goes on already, if there is one."""
        datastore = self.datastore(request, name)
        data = request.data or {}
        if not isinstance(data, Mapping):
            raise SpecError("body", "must be a JSON object")
        fields = Fields(data)
        nodes, path = fields.raw("nodes"), fields.raw("path")
        fields.finish()
        if nodes is not None and not (
            isinstance(nodes, list) and all(isinstance(node, str) for node in nodes)
        ):
            raise SpecError("nodes", 'must be a list of names of nodes, such as ["gpu-1", "gpu-2"]')
        if path is not None and not isinstance(path, str):
            raise SpecError("path", "must be a path below the datastore, such as 2024/birds")
        begin_test(_principal(request), datastore, nodes, path or "")
        return Response(DatastoreTestSerializer(newest_test(datastore)).data, status=202)


class DatastoreTestCancel(_DatastoreTestView):
    @extend_schema(request=None, responses={202: DatastoreTestSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Cancel the test that goes on."""
        datastore = self.datastore(request, name)
        test = newest_test(datastore)
        if test is None:
            raise Http404
        cancel_test(_principal(request), datastore)
        return Response(DatastoreTestSerializer(newest_test(datastore)).data, status=202)
