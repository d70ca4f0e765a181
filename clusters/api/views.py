from __future__ import annotations

from typing import cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.api.serializers import ClusterSerializer, NodeSerializer
from clusters.overview import cluster_cards, node_cards
from clusters.visibility import visible_nodes
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import Workspace
from workspaces.states import Role


class _ReadView(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    def workspace(self, request: Request) -> Workspace:
        return cast("PrincipalRequest", request).principal.workspace


class ClusterList(_ReadView):
    @extend_schema(responses=ClusterSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The clusters that the workspace may use."""
        return Response(ClusterSerializer(cluster_cards(self.workspace(request)), many=True).data)


class NodeList(_ReadView):
    @extend_schema(responses=NodeSerializer(many=True))
    def get(self, request: Request) -> Response:
        """All nodes of those clusters, with their GPUs and what is free."""
        workspace = self.workspace(request)
        return Response(NodeSerializer(node_cards(visible_nodes(workspace), workspace), many=True).data)


class NodeDetail(_ReadView):
    @extend_schema(responses=NodeSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One node by its name."""
        workspace = self.workspace(request)
        found = node_cards(visible_nodes(workspace).filter(name=name), workspace)
        if not found:
            raise Http404
        return Response(NodeSerializer(found[0]).data)
