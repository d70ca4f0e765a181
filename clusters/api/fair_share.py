"""The API of the shares of workspaces in a cluster, for operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from clusters.fair_share import shares
from clusters.fair_share.shares import MAX_SHARE, ShareRow
from clusters.models import Cluster
from workspaces.access import must_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import User
from workspaces.states import Role


class ShareSerializer(serializers.Serializer[ShareRow | Sequence[ShareRow]]):
    workspace = serializers.SlugField(source="workspace.slug")
    share = serializers.FloatField(help_text="In relation to the shares of the others; 1 if nobody set it.")
    share_part = serializers.FloatField(
        source="standing.share", help_text="Its part of the shares of all workspaces here, 0 to 1."
    )
    used_part = serializers.FloatField(
        source="standing.used", help_text="Its part of the recent use, 0 to 1."
    )
    factor = serializers.FloatField(
        source="standing.factor", help_text="1 without any use, 1/2 at exactly its share, 0 without a share."
    )
    gpu_hours = serializers.FloatField(
        help_text="The recent use; it loses half of its weight in FAIR_SHARE_HALF_LIFE_DAYS."
    )


class NewSharesSerializer(serializers.Serializer[Mapping[str, Mapping[str, float]]]):
    shares = serializers.DictField(
        child=serializers.FloatField(min_value=0, max_value=MAX_SHARE),
        help_text="Shares by the slugs of workspaces; those of the others are kept.",
    )


class ClusterShares(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(operation_id="cluster_shares_list", responses=ShareSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The shares of the workspaces in a cluster, and what they have used. For operators."""
        _operator(request)
        return _answer(_cluster(name))

    @extend_schema(request=NewSharesSerializer, responses=ShareSerializer(many=True))
    def patch(self, request: Request, name: str) -> Response:
        """Set the shares of the given workspaces. For operators."""
        who, cluster = _operator(request), _cluster(name)
        serializer = NewSharesSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        shares.set_shares(cluster, serializer.validated_data["shares"], who)
        return _answer(cluster)


def _operator(request: Request) -> User:
    who = cast("PrincipalRequest", request).principal.user
    must_operate(who)
    return who


def _cluster(name: str) -> Cluster:
    return get_object_or_404(Cluster, name=name, deleted_at=None)


def _answer(cluster: Cluster) -> Response:
    return Response(ShareSerializer(shares.share_rows(cluster), many=True).data)
