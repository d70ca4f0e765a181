"""Service accounts of a workspace and their tokens, for its owners."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces.access import Principal, lacking
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.models import User
from workspaces.service_accounts import account_tokens, accounts
from workspaces.service_accounts.errors import ServiceAccountError
from workspaces.states import Role, TokenScope
from workspaces.tokens import DEFAULT_LIFETIME_DAYS

ROLES = [(role.value, role.value) for role in accounts.ROLES]
SCOPES = [(scope.value, scope.words) for scope in TokenScope]


class ServiceAccountSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="username")
    role = serializers.CharField()
    is_active = serializers.BooleanField(help_text="False: it is disabled, and its tokens are refused.")
    made_by = serializers.CharField()
    created_at = serializers.DateTimeField(source="date_joined")
    tokens = serializers.IntegerField(source="token_count", help_text="Those that were not revoked.")
    last_used_at = serializers.DateTimeField(allow_null=True)


class NewServiceAccountSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(
        max_length=accounts.MAX_NAME, help_text="People and service accounts share their names."
    )
    role = serializers.ChoiceField(ROLES, default=Role.CONTRIBUTOR)


class ServiceAccountChangeSerializer(serializers.Serializer[Any]):
    role = serializers.ChoiceField(ROLES, required=False)
    is_active = serializers.BooleanField(
        required=False, help_text="False: disable it. True: enable it again."
    )


class ServiceTokenSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    scope = serializers.CharField()
    hint = serializers.CharField(help_text="Its first characters.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True, help_text="null: never.")
    last_used_at = serializers.DateTimeField(allow_null=True)
    last_client = serializers.CharField(
        help_text="The program that used it last; empty if that is not known."
    )


class NewServiceTokenSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=account_tokens.MAX_NAME)
    scope = serializers.ChoiceField(SCOPES, default=TokenScope.SUBMIT)
    days = serializers.IntegerField(
        min_value=0,
        max_value=account_tokens.MAX_DAYS,
        default=DEFAULT_LIFETIME_DAYS,
        help_text="Days until it expires; 0: never.",
    )


class CreatedServiceTokenSerializer(ServiceTokenSerializer):
    token = serializers.CharField(help_text="The token, returned only here.")


class _ServiceAccountView(APIView):
    permission_classes = [AtLeast(Role.VIEWER)]
    asks_for_password = True

    def owner(self, request: Request, slug: str) -> Principal:
        """Returns the caller. Raises Http404 if they do not act in this workspace, and ApiProblem if they are
        no owner of it."""
        who = cast("PrincipalRequest", request).principal
        if who.workspace.slug != slug:
            raise Http404
        if not who.may(Role.OWNER):
            raise ApiProblem(403, lacking(who, Role.OWNER))
        return who

    def account(self, request: Request, slug: str, name: str) -> tuple[Principal, User]:
        who = self.owner(request, slug)
        account = accounts.listed(who.workspace).filter(username=name).first()
        if account is None:
            raise Http404
        return who, account

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, ServiceAccountError):
            exc = ApiProblem(400, f"{exc.field}: {exc.message}", [(exc.field, exc.message)])
        return super().handle_exception(exc)


class ServiceAccountList(_ServiceAccountView):
    @extend_schema(
        operation_id="workspace_service_accounts_list", responses=ServiceAccountSerializer(many=True)
    )
    def get(self, request: Request, slug: str) -> Response:
        """The service accounts of the workspace in which you act, by name. For its owners."""
        rows = accounts.listed(self.owner(request, slug).workspace)
        return Response(ServiceAccountSerializer(rows, many=True).data)

    @extend_schema(request=NewServiceAccountSerializer, responses={201: ServiceAccountSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Make a service account in the workspace in which you act. For its owners."""
        who = self.owner(request, slug)
        new = NewServiceAccountSerializer(data=request.data)
        new.is_valid(raise_exception=True)
        made = accounts.create(
            who.user, who.workspace, new.validated_data["name"], Role(new.validated_data["role"])
        )
        account = accounts.listed(who.workspace).get(pk=made.pk)
        return Response(ServiceAccountSerializer(account).data, status=201)


class ServiceAccountDetail(_ServiceAccountView):
    @extend_schema(responses=ServiceAccountSerializer)
    def get(self, request: Request, slug: str, name: str) -> Response:
        """One service account."""
        return Response(ServiceAccountSerializer(self.account(request, slug, name)[1]).data)

    @extend_schema(request=ServiceAccountChangeSerializer, responses=ServiceAccountSerializer)
    def patch(self, request: Request, slug: str, name: str) -> Response:
        """Give a service account another role, disable it, or enable it again."""
        who, account = self.account(request, slug, name)
        change = ServiceAccountChangeSerializer(data=request.data)
        change.is_valid(raise_exception=True)
        fields = change.validated_data
        if "role" in fields:
            accounts.change_role(who.user, account, Role(fields["role"]))
        if "is_active" in fields:
            accounts.set_active(who.user, account, is_active=fields["is_active"])
        return Response(ServiceAccountSerializer(accounts.listed(who.workspace).get(pk=account.pk)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Delete a service account: its tokens are revoked, and its runs stay with its name."""
        who, account = self.account(request, slug, name)
        accounts.delete(who.user, account)
        return Response(status=204)


class ServiceTokenList(_ServiceAccountView):
    @extend_schema(operation_id="service_account_tokens_list", responses=ServiceTokenSerializer(many=True))
    def get(self, request: Request, slug: str, name: str) -> Response:
        """The tokens of a service account that were not revoked, the one used last first."""
        _, account = self.account(request, slug, name)
        return Response(ServiceTokenSerializer(accounts.tokens_of(account), many=True).data)

    @extend_schema(request=NewServiceTokenSerializer, responses={201: CreatedServiceTokenSerializer})
    def post(self, request: Request, slug: str, name: str) -> Response:
        """Make a token of a service account. Only this answer has it."""
        who, account = self.account(request, slug, name)
        new = NewServiceTokenSerializer(data=request.data)
        new.is_valid(raise_exception=True)
        fields = new.validated_data
        lifetime = timedelta(days=fields["days"]) if fields["days"] else None
        token, text = account_tokens.create_token(
            who.user, account, fields["name"], TokenScope(fields["scope"]), lifetime
        )
        body = {**ServiceTokenSerializer(token).data, "token": text}
        return Response(body, status=201, headers={"Cache-Control": "no-store"})


class ServiceTokenDetail(_ServiceAccountView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, name: str, pk: int) -> Response:
        """Revoke a token of a service account."""
        who, account = self.account(request, slug, name)
        token = accounts.tokens_of(account).select_related("user", "workspace").filter(pk=pk).first()
        if token is None:
            raise Http404
        account_tokens.revoke_token(who.user, token)
        return Response(status=204)
