from __future__ import annotations

from typing import cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.api.serializers import (
    ClusterSerializer,
    GpuModelSerializer,
    InvitationSerializer,
    InvitedSerializer,
    NodeSerializer,
)
from clusters.enrolment.join import invite
from clusters.enrolment.join_instructions import instructions
from clusters.enrolment.node_tokens import revoke_node
from clusters.models import Node
from clusters.overview import cluster_cards, node_cards
from clusters.visibility import visible_nodes
from trainhub_launch.gpus.catalogue import CATALOGUE
from workspaces.access import must_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import User, Workspace
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


class GpuModels(_ReadView):
    @extend_schema(responses=GpuModelSerializer(many=True))
    def get(self, request: Request) -> Response:  # noqa: ARG002 - DRF's signature
        """The known GPU models, from the slowest to the fastest."""
        return Response(GpuModelSerializer(CATALOGUE, many=True).data)


class NodeList(_ReadView):
    @extend_schema(responses=NodeSerializer(many=True))
    def get(self, request: Request) -> Response:
        """All nodes of the clusters that the workspace may use, with their GPUs and free resources."""
        workspace = self.workspace(request)
        cards = node_cards(visible_nodes(workspace).filter(removed_at=None), workspace)
        return Response(NodeSerializer(cards, many=True, context={"workspace": workspace}).data)


class NodeDetail(_ReadView):
    @extend_schema(responses=NodeSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One node by its name."""
        workspace = self.workspace(request)
        cards = node_cards(visible_nodes(workspace).filter(name=name), workspace)
        if not cards:
            raise Http404
        return Response(NodeSerializer(cards[0], context={"workspace": workspace}).data)


class _OperatorView(APIView):
    asks_for_password = True
    permission_classes = [AtLeast(Role.VIEWER)]

    def operator(self, request: Request) -> User:
        who = cast("PrincipalRequest", request).principal.user
        must_operate(who)
        return who


class Invitations(_OperatorView):
    @extend_schema(request=InvitationSerializer, responses={201: InvitedSerializer})
    def post(self, request: Request) -> Response:
        """Create a join token for one machine. It is valid for 24 hours, works once, and is shown only once.
        For operators."""
        operator = self.operator(request)
        serializer = InvitationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        invitation, text = invite(
            values["cluster"], values["name"], operator, monitor_only=values["monitor_only"]
        )
        answer = {
            "token": text,
            "command": instructions(text).command,
            "cluster": invitation.cluster,
            "name": invitation.name,
        }
        return Response(InvitedSerializer({**answer, "expires_at": invitation.expires_at}).data, status=201)


class NodeRevoke(_OperatorView):
    @extend_schema(request=None, responses=NodeSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Revoke the node's token; its runs end as lost. Idempotent. For operators."""
        operator = self.operator(request)
        node = Node.objects.select_related("cluster").filter(name=name).first()
        if node is None:
            raise Http404
        if node.revoked_at is None:
            revoke_node(node, operator)
        workspace = cast("PrincipalRequest", request).principal.workspace
        return Response(
            NodeSerializer(node_cards([node], workspace)[0], context={"workspace": workspace}).data
        )
