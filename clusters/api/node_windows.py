"""The API of the times in which nodes are kept free, for operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.models import Cluster, NodeReservation
from clusters.windows import node_windows
from workspaces.access import must_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import User
from workspaces.states import Role


class NodeWindowSerializer(serializers.Serializer[NodeReservation | Sequence[NodeReservation]]):
    id = serializers.IntegerField()
    node = serializers.CharField(source="node.name")
    begins_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    workspace = serializers.CharField(
        source="workspace.slug", default="", help_text="Whose runs it takes; empty: nobody's (maintenance)."
    )
    note = serializers.CharField()
    created_by = serializers.CharField()


class NewWindowSerializer(serializers.Serializer[Mapping[str, object]]):
    nodes = serializers.ListField(
        child=serializers.CharField(max_length=50), max_length=node_windows.MAX_WINDOWS
    )
    begins_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    workspace = serializers.CharField(max_length=50, required=False, default="", allow_blank=True)
    note = serializers.CharField(
        max_length=node_windows.MAX_NOTE, required=False, default="", allow_blank=True
    )


class ClusterWindows(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(operation_id="cluster_windows_list", responses=NodeWindowSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The windows of the cluster's nodes that are not over. For operators."""
        _operator(request)
        return Response(NodeWindowSerializer(list(node_windows.current(_cluster(name))), many=True).data)

    @extend_schema(request=NewWindowSerializer, responses={201: NodeWindowSerializer(many=True)})
    def post(self, request: Request, name: str) -> Response:
        """Keep nodes free for a workspace, or for nobody, from one time to another. Active runs continue. For
        operators."""
        who, cluster = _operator(request), _cluster(name)
        serializer = NewWindowSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        windows = node_windows.add(
            cluster,
            values["nodes"],
            (values["begins_at"], values["ends_at"]),
            who,
            workspace=values["workspace"],
            note=values["note"],
        )
        return Response(NodeWindowSerializer(windows, many=True).data, status=201)


class ClusterWindow(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, pk: int) -> Response:
        """End a window now, or before it begins. For operators."""
        who = _operator(request)
        windows = NodeReservation.objects.select_related("node__cluster")
        node_windows.end(get_object_or_404(windows, pk=pk, node__cluster__name=name), who)
        return Response(status=204)


def _operator(request: Request) -> User:
    who = cast("PrincipalRequest", request).principal.user
    must_operate(who)
    return who


def _cluster(name: str) -> Cluster:
    return get_object_or_404(Cluster, name=name, deleted_at=None)
