"""Invitations to a workspace by mail or by a link, for people who may have no account yet."""

from __future__ import annotations

from typing import Any, cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces.access import lacking, may_operate
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.api.workspaces import ROLES
from workspaces.mail import invitation_links
from workspaces.mail.errors import MailError
from workspaces.models import InvitationLink, Workspace
from workspaces.states import Role


class InvitationLinkSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    role = serializers.CharField(help_text="The role in the workspace of whoever accepts.")
    address = serializers.CharField(help_text="Where the link was sent; empty if it was shown instead.")
    made_by = serializers.CharField(source="maker")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class NewInvitationLinkSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(ROLES)
    address = serializers.CharField(
        max_length=254,
        required=False,
        allow_blank=True,
        default="",
        help_text="The mail address to which the link is sent. Empty: the answer has the link.",
    )


class CreatedInvitationLinkSerializer(InvitationLinkSerializer):
    link = serializers.CharField(
        allow_null=True, help_text="The link, returned only here; null if it is sent by mail."
    )


class _InvitationLinkView(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]
    asks_for_password = True

    def workspace(self, request: Request, slug: str) -> Workspace:
        """Returns the workspace if the caller may invite to it: as an operator, or as an owner who acts in
        it. Raises Http404 for a workspace that the caller cannot see, and ApiProblem."""
        who = cast("PrincipalRequest", request).principal
        workspace = Workspace.objects.filter(slug=slug).first()
        if workspace is None or (workspace != who.workspace and not may_operate(who.user)):
            raise Http404
        if not may_operate(who.user) and not who.may(Role.OWNER):
            raise ApiProblem(403, lacking(who, Role.OWNER))
        return workspace


class InvitationLinkList(_InvitationLinkView):
    @extend_schema(operation_id="workspace_invitations_list", responses=InvitationLinkSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The open invitations to a workspace by mail or by link, the newest first. For its owners and for
        operators."""
        rows = InvitationLink.objects.filter(workspace=self.workspace(request, slug)).order_by("-pk")
        return Response(InvitationLinkSerializer(rows, many=True).data)

    @extend_schema(request=NewInvitationLinkSerializer, responses={201: CreatedInvitationLinkSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Invite somebody who may have no account yet. The link works once, for a week. For owners of the
        workspace and for operators."""
        workspace = self.workspace(request, slug)
        user = cast("PrincipalRequest", request).principal.user
        new = NewInvitationLinkSerializer(data=request.data)
        new.is_valid(raise_exception=True)
        role, address = Role(new.validated_data["role"]), new.validated_data["address"]
        link = None
        try:
            if address:
                invitation = invitation_links.invite_address(user, workspace, role, address)
            else:
                invitation, link = invitation_links.create_link(user, workspace, role)
        except MailError as error:
            raise ApiProblem(
                400, f"{error.field}: {error.message}", [(error.field, error.message)]
            ) from error
        body = {**InvitationLinkSerializer(invitation).data, "link": link}
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


class InvitationLinkDetail(_InvitationLinkView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        """Withdraw an invitation; its link no longer works. For owners of the workspace and for operators."""
        workspace = self.workspace(request, slug)
        invitation = InvitationLink.objects.filter(workspace=workspace, pk=pk).first()
        user = cast("PrincipalRequest", request).principal.user
        if invitation is None or not invitation_links.withdraw(user, invitation):
            raise Http404
        return Response(status=204)
