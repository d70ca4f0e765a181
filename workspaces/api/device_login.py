"""The device flow of RFC 8628: a program without a browser gets a token that its person allows in one."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces.api.problems import ApiProblem
from workspaces.authentication.password_check import client_address
from workspaces.device_login import device_requests
from workspaces.http.problems import CONTENT_TYPE, problem_body
from workspaces.states import TokenScope

NO_STORE = {"Cache-Control": "no-store"}
MAX_ADDRESS = 64


class DeviceLoginSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(
        max_length=100, help_text="What asks, and where: the person sees it. For example: laptop of ada."
    )
    scope = serializers.ChoiceField(
        choices=[scope.value for scope in TokenScope], default=TokenScope.SUBMIT.value
    )


class DeviceCodesSerializer(serializers.Serializer[Any]):
    device_code = serializers.CharField(help_text="For the program: it fetches the token with it.")
    user_code = serializers.CharField(help_text="For the person, who compares it on the page.")
    verification_uri = serializers.CharField()
    verification_uri_complete = serializers.CharField()
    expires_in = serializers.IntegerField(help_text="Seconds.")
    interval = serializers.IntegerField(help_text="Seconds to wait between two requests for the token.")


class DeviceCodeSerializer(serializers.Serializer[Any]):
    device_code = serializers.CharField(max_length=200)


class DeviceTokenSerializer(serializers.Serializer[Any]):
    access_token = serializers.CharField()
    token_type = serializers.CharField()
    scope = serializers.CharField()
    workspace = serializers.CharField(help_text="The short name of the workspace in which it acts.")
    expires_in = serializers.IntegerField(allow_null=True, help_text="Seconds; null: it does not expire.")


class _PublicView(APIView):
    """Open to everybody: who asks has no token yet."""

    authentication_classes = ()
    permission_classes = ()


class DeviceLoginStart(_PublicView):
    @extend_schema(request=DeviceLoginSerializer, responses={201: DeviceCodesSerializer}, auth=[])
    def post(self, request: Request) -> Response:
        """Begin to sign a program in. Show its person `user_code` and `verification_uri`, then ask
        `device-login/token/` with `device_code` every `interval` seconds."""
        body = DeviceLoginSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        try:
            login, code = device_requests.begin(
                fields["name"], TokenScope(fields["scope"]), client_address(request)[:MAX_ADDRESS]
            )
        except device_requests.TooManyRequests as error:
            raise ApiProblem(429, str(error)) from error
        page = f"{settings.PUBLIC_URL}{reverse('device')}"
        user_code = device_requests.format_code(login.user_code)
        answer = {
            "device_code": code,
            "user_code": user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?code={user_code}",
            "expires_in": int(device_requests.LIFETIME.total_seconds()),
            "interval": login.interval_s,
        }
        return Response(answer, status=201, headers=NO_STORE)


class DeviceLoginToken(_PublicView):
    @extend_schema(request=DeviceCodeSerializer, responses=DeviceTokenSerializer, auth=[])
    def post(self, request: Request) -> HttpResponseBase:
        """Fetch the token, once the person has allowed it. Until then the answer is 400, with `error` as RFC
        8628 names it: authorization_pending, slow_down, access_denied, expired_token or invalid_grant."""
        body = DeviceCodeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            token = device_requests.fetch(body.validated_data["device_code"])
        except device_requests.DeviceError as error:
            problem = problem_body(400, "Bad Request", error.message) | {"error": error.code}
            return JsonResponse(problem, status=400, content_type=CONTENT_TYPE, headers=NO_STORE)
        answer = {
            "access_token": token.text,
            "token_type": "Bearer",
            "scope": token.scope.value,
            "workspace": token.workspace.slug,
            "expires_in": token.expires_in_s,
        }
        return Response(answer, headers=NO_STORE)
