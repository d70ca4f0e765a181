from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces import audit, tokens
from workspaces.access import Principal
from workspaces.api.authentication import bearer_token
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
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
    max_source_files = serializers.SerializerMethodField(
        help_text="How many files the source of a run may have."
    )
    max_source_bytes = serializers.SerializerMethodField(
        help_text="How many bytes the files of a source may have together."
    )

    def get_max_source_files(self, _: Principal) -> int:
        return settings.MAX_SNAPSHOT_FILES

    def get_max_source_bytes(self, _: Principal) -> int:
        return settings.MAX_SNAPSHOT_BYTES


class Me(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """The user who sends the request, with workspace, role and scope."""
        return Response(MeSerializer(cast("PrincipalRequest", request).principal).data)


class OwnToken(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request) -> Response:
        """Revokes the API token with which the request is sent."""
        text = bearer_token(request)
        # A session is signed in without a token, and ends otherwise.
        if text is None:
            raise ApiProblem(400, "The request is sent without an API token, so there is none to revoke.")
        who = cast("PrincipalRequest", request).principal
        name = tokens.revoke_text(text)
        audit.record(who.user, "token.revoked", name, who.workspace)
        return Response(status=204)
