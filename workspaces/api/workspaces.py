"""Workspaces and their members."""

from __future__ import annotations

from typing import Any, cast

from django.db.models import Count, Q, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces import people
from workspaces.access import Principal, lacking, may_operate, must_operate
from workspaces.administration import workspace_changes
from workspaces.administration.errors import AdministrationError
from workspaces.administration.workspace_changes import MAX_NAME, MAX_SLUG
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.models import Membership, User, Workspace
from workspaces.states import Role

# Service accounts are counted as no members.
_PEOPLE = Q(memberships__user__service_workspace=None)
ROLES = [(role.value, role.value) for role in Role]


class WorkspaceSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField(help_text="The short name, which never changes.")
    name = serializers.CharField()
    members = serializers.IntegerField(source="member_count")
    created_at = serializers.DateTimeField()
    archived_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when its members can only read it; null if they can work in it."
    )


class NewWorkspaceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME)
    slug = serializers.CharField(
        max_length=MAX_SLUG,
        required=False,
        allow_blank=True,
        default="",
        help_text="By default made from the name.",
    )
    owner = serializers.CharField(
        max_length=150,
        required=False,
        allow_blank=True,
        default="",
        help_text="User name of the first owner; by default you.",
    )


class WorkspaceChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=MAX_NAME, required=False)
    is_archived = serializers.BooleanField(
        required=False, help_text="True: its members can only read it. False: they can work in it again."
    )


class WorkspaceMemberSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(source="user.username")
    role = serializers.CharField()
    is_active = serializers.BooleanField(
        source="user.is_active", help_text="False: an operator has deactivated the account."
    )


class NewMemberSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(ROLES)


class AddedMemberSerializer(NewMemberSerializer):
    is_invited = serializers.BooleanField(
        help_text="True: the person has an account, and becomes a member by accepting the invitation."
    )
    one_time_password = serializers.CharField(
        allow_null=True,
        help_text="The first password of a new account, returned only here; null for an invited person.",
    )


class MemberRoleSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(ROLES)


class _WorkspaceView(APIView):
    # Operators change workspaces, and owners members, whatever the role in the workspace of their token.
    permission_classes = [AtLeast(Role.VIEWER)]
    asks_for_password = True

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def visible(self, request: Request) -> QuerySet[Workspace]:
        """Returns the workspaces that the caller may see: operators all, a token its own, a session those of
        its person."""
        who = self.principal(request)
        rows = Workspace.objects.annotate(member_count=Count("memberships", filter=_PEOPLE))
        if may_operate(who.user):
            return rows
        if isinstance(request.auth, Principal):
            return rows.filter(pk=who.workspace.pk)
        return rows.filter(pk__in=who.user.memberships.values("workspace_id"))

    def workspace(self, request: Request, slug: str) -> Workspace:
        workspace = self.visible(request).filter(slug=slug).first()
        if workspace is None:
            raise Http404
        return workspace


class WorkspaceList(_WorkspaceView):
    @extend_schema(operation_id="workspaces_list", responses=WorkspaceSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The workspaces that you can see: operators all, others their own; a token only that in which it
        acts."""
        return Response(WorkspaceSerializer(self.visible(request).order_by("slug"), many=True).data)

    @extend_schema(request=NewWorkspaceSerializer, responses={201: WorkspaceSerializer})
    def post(self, request: Request) -> Response:
        """Make a workspace. For operators."""
        who = self.principal(request).user
        must_operate(who)
        new = NewWorkspaceSerializer(data=request.data)
        new.is_valid(raise_exception=True)
        fields = new.validated_data
        try:
            owner = _owner(fields["owner"]) if fields["owner"] else who
            made = workspace_changes.create(who, fields["name"], fields["slug"], owner=owner)
        except AdministrationError as error:
            raise _problem(error) from error
        return Response(WorkspaceSerializer(self.workspace(request, made.slug)).data, status=201)


class WorkspaceDetail(_WorkspaceView):
    @extend_schema(responses=WorkspaceSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """One workspace."""
        return Response(WorkspaceSerializer(self.workspace(request, slug)).data)

    @extend_schema(request=WorkspaceChangeSerializer, responses=WorkspaceSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Rename, archive or restore a workspace. For operators. One with runs that have not ended cannot be
        archived."""
        who = self.principal(request).user
        must_operate(who)
        workspace = self.workspace(request, slug)
        change = WorkspaceChangeSerializer(data=request.data)
        change.is_valid(raise_exception=True)
        fields = change.validated_data
        try:
            if "name" in fields:
                workspace_changes.rename(who, workspace, fields["name"])
            if "is_archived" in fields:
                to = workspace_changes.archive if fields["is_archived"] else workspace_changes.restore
                to(who, workspace)
        except AdministrationError as error:
            raise _problem(error) from error
        return Response(WorkspaceSerializer(self.workspace(request, slug)).data)


class WorkspaceMembers(_WorkspaceView):
    @extend_schema(operation_id="workspace_members_list", responses=WorkspaceMemberSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The members of a workspace, by user name. Its service accounts are listed apart."""
        members = people.memberships_of(self.workspace(request, slug))
        return Response(WorkspaceMemberSerializer(members, many=True).data)

    @extend_schema(request=NewMemberSerializer, responses={201: AddedMemberSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Add a member, as an owner of the workspace in which you act. A new name becomes an account;
        somebody with an account is invited."""
        who = _owner_of(self.principal(request), self.workspace(request, slug))
        new = NewMemberSerializer(data=request.data)
        new.is_valid(raise_exception=True)
        role = Role(new.validated_data["role"])
        try:
            added = people.add(who, new.validated_data["username"], role)
        except people.PeopleError as error:
            raise _problem(error) from error
        body = {
            "username": added.user.get_username(),
            "role": role,
            "is_invited": added.password is None,
            "one_time_password": added.password,
        }
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


class WorkspaceMember(_WorkspaceView):
    @extend_schema(request=MemberRoleSerializer, responses=WorkspaceMemberSerializer)
    def patch(self, request: Request, slug: str, username: str) -> Response:
        """Change the role of a member, as an owner of the workspace in which you act."""
        who = _owner_of(self.principal(request), self.workspace(request, slug))
        change = MemberRoleSerializer(data=request.data)
        change.is_valid(raise_exception=True)
        membership = _membership(who, username)
        try:
            people.change_role(who, membership, Role(change.validated_data["role"]))
        except people.PeopleError as error:
            raise _problem(error) from error
        return Response(WorkspaceMemberSerializer(_membership(who, username)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, username: str) -> Response:
        """Remove a member, as an owner of the workspace in which you act. Their tokens for it are revoked."""
        who = _owner_of(self.principal(request), self.workspace(request, slug))
        try:
            people.remove(who, _membership(who, username))
        except people.PeopleError as error:
            raise _problem(error) from error
        return Response(status=204)


def _owner_of(who: Principal, workspace: Workspace) -> Principal:
    """Returns the caller. Raises ApiProblem unless they act in this workspace, as an owner."""
    if who.workspace.pk != workspace.pk:
        raise ApiProblem(
            403, f"You act in {who.workspace.slug}; use a token that was made in {workspace.slug}."
        )
    if not who.may(Role.OWNER):
        raise ApiProblem(403, lacking(who, Role.OWNER))
    return who


def _membership(who: Principal, username: str) -> Membership:
    membership = people.memberships_of(who.workspace).filter(user__username=username).first()
    if membership is None:
        raise Http404
    return membership


def _owner(username: str) -> User:
    owner = User.objects.filter(username=username).first()
    if owner is None:
        raise AdministrationError("owner", f"there is no user {username}; user names are case-sensitive")
    return owner


def _problem(error: AdministrationError | people.PeopleError) -> ApiProblem:
    return ApiProblem(400, f"{error.field}: {error.message}", [(error.field, error.message)])
