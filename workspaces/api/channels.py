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
    """A notification channel in its present state. For a webhook, only scheme and host of the address are
    shown."""

    id = serializers.IntegerField()
    scope = serializers.SerializerMethodField(
        help_text="Whose channel it is: own (yours) or workspace (managed by its owners)."
    )
    kind = serializers.CharField(help_text="How messages are delivered: webhook or mail.")
    name = serializers.CharField()
    target = serializers.SerializerMethodField()
    is_signed = serializers.SerializerMethodField()
    events = serializers.ListField(child=serializers.ChoiceField(choices=list(CHOICES)))
    ours_only = serializers.BooleanField(
        help_text=(
            "True if, of all alerts, the channel receives only those about GPUs that a run of this "
            "workspace holds."
        )
    )
    state = serializers.SerializerMethodField(
        help_text="The channel's state: unused, working, failing or paused."
    )
    waiting = serializers.SerializerMethodField(
        help_text="The number of messages that are not delivered yet."
    )
    last_sent_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField()
    failing_since = serializers.DateTimeField(allow_null=True)
    paused_at = serializers.DateTimeField(allow_null=True)

    def get_scope(self, channel: Channel) -> str:
        return channels.scope_of(channel)

    def get_target(self, channel: Channel) -> str:
        return channels.target_label(channel)

    def get_is_signed(self, channel: Channel) -> bool:
        return bool(channel.secret)

    def get_state(self, channel: Channel) -> str:
        return channels.state_of(channel)

    def get_waiting(self, channel: Channel) -> int:
        return channel.deliveries.filter(state="waiting").count()


class ChannelChangeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    target = serializers.CharField(
        max_length=1000,
        help_text=(
            "The webhook's URL, or an email address. In the path and query of a URL, {secret:NAME} stands "
            "for a stored secret."
        ),
    )
    secret = serializers.CharField(
        max_length=200,
        allow_blank=True,
        required=False,
        write_only=True,
        help_text=(
            "The secret that signs messages to a webhook, or {secret:NAME} for a stored one; if empty, they "
            "are not signed."
        ),
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
        channel = channels.of(self.principal(request)).filter(pk=pk).first()
        if channel is None:
            raise Http404
        return channel

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]
        if isinstance(exc, channels.ChannelError):
            exc = ApiProblem(400, f"{exc.field}: {exc.message}", [(exc.field, exc.message)])
        elif isinstance(exc, channels.NotAllowed):
            exc = ApiProblem(403, str(exc))
        return super().handle_exception(exc)


class ChannelList(_ChannelView):
    @extend_schema(operation_id="notification_channels_list", responses=ChannelSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Your own notification channels, and the workspace's if you are an owner."""
        return Response(
            ChannelSerializer(channels.of(self.principal(request)).order_by("pk"), many=True).data
        )

    @extend_schema(request=NewChannelSerializer, responses={201: ChannelSerializer})
    def post(self, request: Request) -> Response:
        """Create a notification channel. Contributors may create their own, owners also the workspace's."""
        serializer = NewChannelSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = {"events": list(USUAL), **serializer.validated_data}
        channel = channels.create(self.principal(request), fields["scope"], fields["kind"], fields)
        return Response(ChannelSerializer(channel).data, status=201)


class ChannelDetail(_ChannelView):
    @extend_schema(operation_id="notification_channels_retrieve", responses=ChannelSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """One notification channel by its id."""
        return Response(ChannelSerializer(self.channel(request, pk)).data)

    @extend_schema(request=ChannelChangeSerializer(partial=True), responses=ChannelSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Change the given fields of a notification channel; the others are kept."""
        channel = self.channel(request, pk)
        serializer = ChannelChangeSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        channels.change(self.principal(request), channel, serializer.validated_data)
        return Response(ChannelSerializer(self.channel(request, pk)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a notification channel with its undelivered messages."""
        channels.delete(self.principal(request), self.channel(request, pk))
        return Response(status=204)


class ChannelTest(_ChannelView):
    @extend_schema(request=None, responses={202: ChannelSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Send a test message within seconds; `state` and `last_error` then show the result. A paused channel
        becomes active again."""
        channel = self.channel(request, pk)
        channels.send_test(self.principal(request), channel)
        return Response(ChannelSerializer(self.channel(request, pk)).data, status=202)
