"""Queues notifications: a row for each event and channel, written in the transaction in which the event
happens."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from workspaces.database.compiled_queries import compiled
from workspaces.models import Channel, Delivery, Membership
from workspaces.notifications.events import TEST, Event

BATCH = 200


def post(event: Event) -> int:
    """Queues the event for every channel that has subscribed to it; returns for how many. Repeating the same
    event has no effect."""
    deliveries = [
        Delivery(
            channel=channel,
            key=event.key,
            event=event.name,
            body=dict(event.body(channel.workspace_id)),
            try_at=event.at,
        )
        for channel in _listening(event.workspaces)
        if set(event.subscriptions) <= set(channel.events) and _concerns(channel, event)
    ]
    if deliveries:
        Delivery.objects.bulk_create(deliveries, batch_size=BATCH, ignore_conflicts=True)
    return len(deliveries)


def post_test(channel: Channel, body: dict[str, object]) -> Delivery:
    """Queues a test message for the channel, whatever its subscriptions and its state are."""
    now = timezone.now()
    return Delivery.objects.create(
        channel=channel, key=f"test:{now.timestamp()}", event=TEST, body=body, try_at=now
    )


def listening(workspaces: Collection[int]) -> QuerySet[Channel]:
    """Returns the channels of these workspaces that are not paused, and whose people are still members."""
    return of_members().filter(workspace__in=workspaces, paused_at=None)


def _listening(workspaces: Collection[int]) -> Iterable[Channel]:
    """Returns the same, for events of which most concern one workspace."""
    if len(workspaces) != 1:
        return listening(workspaces)
    (workspace,) = workspaces
    return _listening_in(workspace)


@compiled
def _listening_in(workspace: int) -> QuerySet[Channel]:
    return of_members().filter(workspace_id=workspace, paused_at=None)


def of_members() -> QuerySet[Channel]:
    members = Membership.objects.filter(
        user=OuterRef("user"), workspace=OuterRef("workspace"), user__is_active=True
    )
    return Channel.objects.filter(Q(user=None) | Exists(members))


def _concerns(channel: Channel, event: Event) -> bool:
    if channel.user_id is not None and event.person is not None and channel.user_id != event.person:
        return False
    return not channel.ours_only or event.theirs == channel.workspace_id
