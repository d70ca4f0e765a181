"""Channels of notifications: a person's own, and for owners the workspace's."""

from __future__ import annotations

from typing import Any, cast

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from workspaces.access import Principal
from workspaces.api.permissions import AtLeast, PrincipalRequest
from workspaces.api.problems import ApiProblem
from workspaces.models import Channel
from workspaces.notifications import channels
from workspaces.notifications.events import CHOICES, USUAL
from workspaces.states import Role


class ChannelSerializer(serializers.Serializer[Any]):
    """A channel as it stands. Of a webhook's address only scheme and host are shown."""

    id = serializers.IntegerField()
    scope = serializers.SerializerMethodField(help_text="own, or workspace.")
    kind = serializers.CharField(help_text="webhook, or mail.")
    name = serializers.CharField()
    target = serializers.SerializerMethodField()
    is_signed = serializers.SerializerMethodField()
    events = serializers.ListField(child=serializers.ChoiceField(choices=list(CHOICES)))
    ours_only = serializers.BooleanField(
        help_text="Of alerts, only those about GPUs that a run of this workspace holds."
    )
    state = serializers.SerializerMethodField(help_text="unused, working, failing or paused.")
    waiting = serializers.SerializerMethodField(help_text="How much is still to be delivered.")
    last_sent_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField()
    failing_since = serializers.DateTimeField(allow_null=True)
    paused_at = serializers.DateTimeField(allow_null=True)

    def get_scope(self, channel: Channel) -> str:
        return channels.scope_of(channel)

    def get_target(self, channel: Channel) -> str:
        return channels.shown_target(channel)

    def get_is_signed(self, channel: Channel) -> bool:
        return bool(channel.secret)

    def get_state(self, channel: Channel) -> str:
        return channels.state_of(channel)

    def get_waiting(self, channel: Channel) -> int:
        return channel.deliveries.filter(state="waiting").count()


class ChannelChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    target = serializers.CharField(max_length=1000, help_text="The webhook's URL, or a mail address.")
    secret = serializers.CharField(
        max_length=200,
        allow_blank=True,
        required=False,
        write_only=True,
        help_text="Signs what a webhook gets.",
    )
    events = serializers.ListField(child=serializers.ChoiceField(choices=list(CHOICES)), required=False)
    ours_only = serializers.BooleanField(required=False)


class NewChannelSerializer(ChannelChangeSerializer):
    scope = serializers.ChoiceField(choices=list(channels.SCOPES), default=channels.OWN)
    kind = serializers.ChoiceField(choices=list(channels.KINDS), default=channels.WEBHOOK)


class _ChannelView(APIView):
    asks_for_password = True
    permission_classes = [AtLeast(Role.VIEWER, writing=Role.CONTRIBUTOR)]

    def principal(self, request: Request) -> Principal:
        return cast("PrincipalRequest", request).principal

    def channel(self, request: Request, pk: int) -> Channel:
        found = channels.of(self.principal(request)).filter(pk=pk).first()
        if found is None:
            raise Http404
        return found

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        if isinstance(exc, channels.ChannelError):
            exc = ApiProblem(400, f"{exc.field}: {exc.message}", [(exc.field, exc.message)])
        elif isinstance(exc, channels.NotAllowed):
            exc = ApiProblem(403, str(exc))
        return super().handle_exception(exc)


class ChannelList(_ChannelView):
    @extend_schema(operation_id="notification_channels_list", responses=ChannelSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Your own channels; for owners also the workspace's."""
        return Response(
            ChannelSerializer(channels.of(self.principal(request)).order_by("pk"), many=True).data
        )

    @extend_schema(request=NewChannelSerializer, responses={201: ChannelSerializer})
    def post(self, request: Request) -> Response:
        """Add one. Contributors for themselves, owners for the workspace."""
        asked = NewChannelSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        told = {"events": list(USUAL), **asked.validated_data}
        made = channels.create(self.principal(request), told["scope"], told["kind"], told)
        return Response(ChannelSerializer(made).data, status=201)


class ChannelDetail(_ChannelView):
    @extend_schema(operation_id="notification_channels_retrieve", responses=ChannelSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """One of them."""
        return Response(ChannelSerializer(self.channel(request, pk)).data)

    @extend_schema(request=ChannelChangeSerializer(partial=True), responses=ChannelSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Change what is named; the rest stays."""
        channel = self.channel(request, pk)
        asked = ChannelChangeSerializer(data=request.data, partial=True)
        asked.is_valid(raise_exception=True)
        channels.change(self.principal(request), channel, asked.validated_data)
        return Response(ChannelSerializer(self.channel(request, pk)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete it, with what still waits for it."""
        channels.delete(self.principal(request), self.channel(request, pk))
        return Response(status=204)


class ChannelTest(_ChannelView):
    @extend_schema(request=None, responses={202: ChannelSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Send a test within seconds; `state` and `last_error` tell how it went. A paused channel is taken up
        again."""
        channel = self.channel(request, pk)
        channels.send_test(self.principal(request), channel)
        return Response(ChannelSerializer(self.channel(request, pk)).data, status=202)
