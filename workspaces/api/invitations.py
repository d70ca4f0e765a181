"""Invitations of the person who asks, to any workspace: list, accept, decline."""

from __future__ import annotations

from typing import Any, cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces import people
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.models import Invitation, User
from workspaces.states import Role


class WorkspaceInvitationSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    workspace = serializers.CharField(source="workspace.slug")
    role = serializers.CharField(help_text="The role that you get in the workspace if you accept.")
    invited_by = serializers.CharField(source="invited_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()


class _InvitationView(APIView):
    # Whoever may act at all may answer an invitation to themselves.
    permission_classes = [AtLeast(Role.VIEWER)]
    asks_for_password = True

    def person(self, request: Request) -> User:
        return cast("PrincipalRequest", request).principal.user

    def invitation(self, request: Request, pk: int) -> Invitation:
        invitation = (
            Invitation.objects.select_related("workspace").filter(pk=pk, user=self.person(request)).first()
        )
        if invitation is None:
            raise Http404
        return invitation


class InvitationList(_InvitationView):
    @extend_schema(operation_id="invitations_list", responses=WorkspaceInvitationSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Your open invitations to workspaces."""
        invitations = (
            Invitation.objects.filter(user=self.person(request))
            .select_related("workspace", "invited_by")
            .order_by("pk")
        )
        return Response(WorkspaceInvitationSerializer(invitations, many=True).data)


class InvitationAccept(_InvitationView):
    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Accept an invitation and become a member of the workspace. The token of this request still acts
        only in its own workspace."""
        if people.accept_invitation(self.person(request), self.invitation(request, pk)) is None:
            raise Http404
        return Response(status=204)


class InvitationDecline(_InvitationView):
    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Decline an invitation. An owner of the workspace may invite you again."""
        people.decline(self.person(request), self.invitation(request, pk))
        return Response(status=204)
