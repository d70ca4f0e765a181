"""Named secrets. Their values go in and never come out."""

from __future__ import annotations

from typing import Any, cast

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.models import Secret
from workspaces.secrets import store
from workspaces.secrets.errors import SecretError, SecretsUnavailable
from workspaces.states import Role

MAX_USES = 100
SCOPE = OpenApiParameter(
    "scope", str, enum=list(store.SCOPES), description="Whose secret is meant; by default the workspace's."
)


class SecretSerializer(serializers.Serializer[Any]):
    """A secret without its value."""

    name = serializers.CharField()
    scope = serializers.SerializerMethodField(help_text="Whose it is: workspace, or person (yours).")
    version = serializers.IntegerField(help_text="How many values it has had.")
    is_masked = serializers.BooleanField(
        help_text="False: the value is too short or like a word, so that logs cannot be masked for it."
    )
    changed_by = serializers.CharField()
    changed_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)

    def get_scope(self, secret: Secret) -> str:
        return store.scope_of(secret)


class SecretUseSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="Who got the value: run, webhook or environment.")
    subject = serializers.CharField(
        help_text="The id of the run, the name of the notification channel, or the environment's version."
    )
    node = serializers.CharField(help_text="The node of the run.")
    count = serializers.IntegerField()
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()


class SecretDetailSerializer(SecretSerializer):
    uses = serializers.SerializerMethodField(help_text=f"The last {MAX_USES} users of it, the latest first.")

    @extend_schema(responses=SecretUseSerializer(many=True))
    def get_uses(self, secret: Secret) -> list[dict[str, Any]]:
        return list(SecretUseSerializer(secret.uses.all()[:MAX_USES], many=True).data)


class SecretValueSerializer(serializers.Serializer[Any]):
    # Spaces and line ends at its ends may be part of a value. What else is wrong with it, the store says.
    value = serializers.CharField(trim_whitespace=False, allow_blank=True, write_only=True)
    scope = serializers.ChoiceField(choices=list(store.SCOPES), default=store.WORKSPACE)


class _SecretView(APIView):
    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]
    asks_for_password = True

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal


class SecretList(_SecretView):
    @extend_schema(operation_id="secrets_list", responses=SecretSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The secrets that your runs can use, without their values: the workspace's and your own."""
        return Response(SecretSerializer(store.visible(self.principal(request)), many=True).data)


class SecretDetail(_SecretView):
    @extend_schema(parameters=[SCOPE], responses=SecretDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """One secret and who used it, without its value."""
        return Response(SecretDetailSerializer(self._secret(request, name)).data)

    @extend_schema(request=SecretValueSerializer, responses={204: None})
    def put(self, request: Request, name: str) -> Response:
        """Store a value under this name, a new one or in place of the old one. Nobody can read it again. The
        workspace's secrets are for its owners to store, and your own for you."""
        body = SecretValueSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        try:
            store.put(self.principal(request), name, fields["value"], fields["scope"])
        except SecretError as error:
            raise ApiProblem(
                400, f"{error.field}: {error.message}", [(error.field, error.message)]
            ) from error
        except store.NotAllowed as error:
            raise ApiProblem(403, str(error)) from error
        except SecretsUnavailable as error:
            raise ApiProblem(503, f"The value was not stored: {error.message}.") from error
        return Response(status=204)

    @extend_schema(parameters=[SCOPE], responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a secret. Runs that have its value keep it until they end; later ones are refused."""
        try:
            store.delete(self.principal(request), self._secret(request, name))
        except store.NotAllowed as error:
            raise ApiProblem(403, str(error)) from error
        return Response(status=204)

    def _secret(self, request: Request, name: str) -> Secret:
        scope = request.query_params.get("scope", store.WORKSPACE)
        if scope not in store.SCOPES:
            problem = f"must be one of {', '.join(store.SCOPES)}"
            raise ApiProblem(400, f"scope: {problem}", [("scope", problem)])
        if not store.NAME.fullmatch(name):
            raise Http404
        secrets = store.visible(self.principal(request))
        secret = secrets.filter(name=name, user__isnull=scope == store.WORKSPACE).first()
        if secret is None:
            raise Http404
        return secret
