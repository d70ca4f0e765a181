"""Creates, changes, tests and deletes channels, and prepares them for display. The secrets of a target are
never shown again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from trainhub_launch.json_types import JsonValue
from workspaces import audit
from workspaces.access import Principal, lacking
from workspaces.models import Channel, Delivery
from workspaces.notifications import outbox, outcomes
from workspaces.notifications.events import CHOICES, TEST
from workspaces.notifications.url_policy import UrlError, check_url
from workspaces.secrets import placeholders, store
from workspaces.states import Role

WEBHOOK, MAIL = "webhook", "mail"
KINDS = (WEBHOOK, MAIL)
OWN, WORKSPACE = "own", "workspace"
SCOPES = (OWN, WORKSPACE)
NEEDED = {OWN: Role.CONTRIBUTOR, WORKSPACE: Role.OWNER}
# The maximum number of channels of one person, or of one workspace.
MOST = 20
CHANGEABLE = ("name", "target", "secret", "events", "ours_only")


class ChannelError(Exception):
    """A channel cannot be made or changed as requested. `field` is the name of the form's field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class NotAllowed(Exception):
    """The person's role does not suffice; the message is a sentence for that person."""


def of(who: Principal) -> QuerySet[Channel]:
    """Returns the channels that `who` may see and change: their own, and for an owner also the
    workspace's."""
    mine = Q(user=who.user)
    channels = Channel.objects.filter(
        mine | Q(user=None) if who.may(NEEDED[WORKSPACE]) else mine, workspace=who.workspace
    )
    return channels.annotate(waiting=Count("deliveries", filter=Q(deliveries__state="waiting")))


def create(who: Principal, scope: str, kind: str, fields: Mapping[str, JsonValue]) -> Channel:
    """Creates a channel. The caller has checked that `scope` and `kind` are among SCOPES and KINDS, and how
    long the texts are. Raises ChannelError, and NotAllowed if the role does not suffice."""
    _must(who, scope)
    if scope == OWN and kind == MAIL and who.user.is_service_account:
        raise ChannelError("kind", "is not for service accounts, which get no mail; use a webhook")
    owner = who.user if scope == OWN else None
    if Channel.objects.filter(workspace=who.workspace, user=owner).count() >= MOST:
        raise ChannelError("name", f"there are {MOST} channels already; delete one first")
    channel = Channel(workspace=who.workspace, user=owner, kind=kind)
    _set(channel, {"secret": "", "ours_only": False, **fields})
    channel.save()
    audit.record(who.user, "channel.created", channel.name, who.workspace, scope=scope, kind=kind)
    return channel


def change(who: Principal, channel: Channel, fields: Mapping[str, JsonValue]) -> None:
    """Changes the fields in CHANGEABLE that are present. A changed target is tried at once. Raises
    ChannelError and NotAllowed."""
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
    """Sends a test message at once, even over a paused channel, to show whether the channel works."""
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


def target_label(channel: Channel) -> str:
    """Returns the target for display. Of a webhook it is only the host, because path and query often contain
    a secret."""
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


def _set(channel: Channel, fields: Mapping[str, JsonValue]) -> None:
    for name in CHANGEABLE:
        if name in fields:
            setattr(channel, name, fields[name])
    channel.events = _events(channel.events)
    channel.target = channel.target.strip()
    _check_secrets(channel)
    if channel.kind == MAIL:
        _check_mail(channel.target)
    else:
        _check_url(channel.target)


def _events(requested: Sequence[str]) -> list[str]:
    unknown = [name for name in requested if name not in CHOICES]
    if unknown or not requested:
        raise ChannelError("events", f"choose at least one of {', '.join(CHOICES)}")
    return [name for name in CHOICES if name in requested]


def _check_mail(address: str) -> None:
    if not has_mail():
        raise ChannelError("kind", "this installation has no mail server; an operator can set EMAIL_URL")
    try:
        validate_email(address)
    except ValidationError as error:
        raise ChannelError("target", "must be an email address") from error


def _check_secrets(channel: Channel) -> None:
    """Raises ChannelError if the address or the signature names a secret that the channel cannot use."""
    for field in ("target", "secret"):
        names = placeholders.names_in(getattr(channel, field))
        if names and channel.kind == MAIL:
            raise ChannelError(field, "must not name a secret; only webhooks use secrets")
        missing = sorted(names - store.resolve(channel.workspace, channel.user, names).keys())
        if missing:
            raise ChannelError(
                field,
                f"names a secret that does not exist: {', '.join(missing)}; store it under Settings first",
            )


def _check_url(url: str) -> None:
    try:
        check_url(placeholders.blank(url))
        # Where messages go must be seen by everybody who may change the channel.
        if placeholders.names_in(urlsplit(url).netloc):
            raise UrlError("must name its host in plain text; only the path and the query may use a secret")
    except (UrlError, ValueError) as error:
        raise ChannelError("target", str(error)) from error
