from __future__ import annotations

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.states import Role


class MeSerializer(serializers.Serializer[Any]):
    """The user, workspace, role and scope with which the token or session acts."""

    user = serializers.CharField(source="user.username")
    display_name = serializers.CharField(
        source="user.display_name",
        allow_blank=True,
        help_text="The name that the user has given, or empty.",
    )
    email = serializers.CharField(
        source="user.email",
        allow_blank=True,
        help_text="The user's confirmed mail address, or empty.",
    )
    workspace = serializers.CharField(source="workspace.slug")
    role = serializers.CharField()
    scope = serializers.CharField(
        help_text="read: the token may only read. write: it may do everything that the role allows."
    )


class Me(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """The user who sends the request, with workspace, role and scope."""
        return Response(MeSerializer(cast("PrincipalRequest", request).principal).data)
