"""Making, changing, testing and ending channels; what is shown of them. A target's secrets are never shown
again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.models import Channel, Delivery
from workspaces.notifications import outbox, outcomes
from workspaces.notifications.events import CHOICES, TEST
from workspaces.notifications.url_policy import UrlError, checked
from workspaces.states import Role

WEBHOOK, MAIL = "webhook", "mail"
KINDS = (WEBHOOK, MAIL)
OWN, WORKSPACE = "own", "workspace"
SCOPES = (OWN, WORKSPACE)
NEEDED = {OWN: Role.CONTRIBUTOR, WORKSPACE: Role.OWNER}
MOST = 20
"""Channels of one person, or of one workspace."""
CHANGEABLE = ("name", "target", "secret", "events", "ours_only")


class ChannelError(Exception):
    """What cannot be done; `field` is the form's, and says where."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class NotAllowed(Exception):
    """The sentence for somebody whose role does not suffice."""


def of(who: Principal) -> QuerySet[Channel]:
    """Those that `who` may see and change: their own, and an owner also the workspace's."""
    mine = Q(user=who.user)
    found = Channel.objects.filter(
        mine | Q(user=None) if who.may(NEEDED[WORKSPACE]) else mine, workspace=who.workspace
    )
    return found.annotate(waiting=Count("deliveries", filter=Q(deliveries__state="waiting")))


def create(who: Principal, scope: str, kind: str, fields: Mapping[str, Any]) -> Channel:
    """Raises ChannelError, and NotAllowed where the role does not suffice."""
    if scope not in SCOPES:
        raise ChannelError("scope", f"must be one of {', '.join(SCOPES)}")
    _must(who, scope)
    if kind not in KINDS:
        raise ChannelError("kind", f"must be one of {', '.join(KINDS)}")
    owner = who.user if scope == OWN else None
    if Channel.objects.filter(workspace=who.workspace, user=owner).count() >= MOST:
        raise ChannelError("name", f"there are {MOST} channels already; delete one first")
    channel = Channel(workspace=who.workspace, user=owner, kind=kind)
    _set(channel, {"secret": "", "ours_only": False, **fields})
    channel.save()
    audit.record(who.user, "channel.created", channel.name, who.workspace, scope=scope, kind=kind)
    return channel


def change(who: Principal, channel: Channel, fields: Mapping[str, Any]) -> None:
    """Only of CHANGEABLE; a field that is absent stays. A changed target is tried at once."""
    _must(who, scope_of(channel))
    before = channel.target
    _set(channel, fields)
    channel.save(update_fields=[name for name in CHANGEABLE if name in fields])
    if channel.target != before:
        outcomes.resume(channel, timezone.now())
    audit.record(who.user, "channel.changed", channel.name, who.workspace)


def delete(who: Principal, channel: Channel) -> None:
    _must(who, scope_of(channel))
    audit.record(who.user, "channel.deleted", channel.name, who.workspace)
    channel.delete()


def send_test(who: Principal, channel: Channel) -> Delivery:
    """Send a message that means nothing, at once, even over a channel that was paused: that is how one learns
    that it works."""
    _must(who, scope_of(channel))
    outcomes.resume(channel, timezone.now())
    text = f"[test] {who.user.get_username()} tries the channel {channel.name} of {who.workspace}. It works."
    return outbox.post_test(
        channel,
        {
            "event": TEST,
            "at": timezone.now().isoformat(),
            "text": text,
            "url": f"{settings.PUBLIC_URL}/settings/",
            "alert": None,
            "node": None,
            "gpu": None,
            "run": None,
        },
    )


def scope_of(channel: Channel) -> str:
    return WORKSPACE if channel.user_id is None else OWN


def shown_target(channel: Channel) -> str:
    """Of a webhook only where it goes: its path and query often hold a secret."""
    if channel.kind == MAIL:
        return channel.target
    parts = urlsplit(channel.target)
    return f"{parts.scheme}://{parts.netloc}/…"


def state_of(channel: Channel) -> str:
    if channel.paused_at is not None:
        return "paused"
    if channel.failing_since is not None:
        return "failing"
    return "working" if channel.last_sent_at is not None else "unused"


def has_mail() -> bool:
    return bool(settings.EMAIL_URL)


def _must(who: Principal, scope: str) -> None:
    if not who.may(NEEDED[scope]):
        raise NotAllowed(lacking(who, NEEDED[scope]))


def _set(channel: Channel, fields: Mapping[str, Any]) -> None:
    for name in CHANGEABLE:
        if name in fields:
            setattr(channel, name, fields[name])
    channel.name = channel.name.strip()
    if not channel.name or len(channel.name) > 100:
        raise ChannelError("name", "must have 1 to 100 characters")
    if len(channel.secret) > 200:
        raise ChannelError("secret", "must have at most 200 characters")
    channel.events = _events(channel.events)
    channel.target = channel.target.strip()
    if channel.kind == MAIL:
        _check_mail(channel.target)
    else:
        _check_url(channel.target)


def _events(asked: Sequence[str]) -> list[str]:
    unknown = [name for name in asked if name not in CHOICES]
    if unknown or not asked:
        raise ChannelError("events", f"choose at least one of {', '.join(CHOICES)}")
    return [name for name in CHOICES if name in asked]


def _check_mail(address: str) -> None:
    if not has_mail():
        raise ChannelError("kind", "this installation has no mail server; an operator can set EMAIL_URL")
    try:
        validate_email(address)
    except ValidationError as error:
        raise ChannelError("target", "must be a mail address") from error


def _check_url(url: str) -> None:
    try:
        checked(url)
    except UrlError as error:
        raise ChannelError("target", str(error)) from error
