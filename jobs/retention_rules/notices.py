"""Tells the owners of a workspace that a stricter rule waits: by mail, and by the channels that want it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.conf import settings
from django.urls import reverse

from jobs.models import RuleInForce
from jobs.retention_rules.rules import Rule
from jobs.states import DataKind
from workspaces.models import OutgoingMail, User, Workspace
from workspaces.notifications import outbox
from workspaces.notifications.events import RETENTION_PLANNED, Event
from workspaces.states import MailKind, Role


def announce(workspace: Workspace, rows: Sequence[RuleInForce], now: datetime) -> None:
    """Queues the messages, in the transaction in which the rules were set."""
    sentence = "; ".join(
        f"{DataKind(row.kind).noun} are {Rule(row.next_days, row.next_only_unsuccessful).words}"
        for row in rows
    )
    begins_at = min(row.next_at for row in rows if row.next_at is not None)
    address = f"{settings.PUBLIC_URL}{reverse('retention')}"
    text = f"From {begins_at:%Y-%m-%d %H:%M} UTC on in the workspace {workspace.slug}: {sentence}."

    def body(_: int) -> Mapping[str, object]:
        return {
            "event": RETENTION_PLANNED,
            "at": now.isoformat(),
            "text": f"[retention] {text}",
            "url": address,
            "alert": None,
            "node": None,
            "gpu": None,
            "run": None,
        }

    kinds = ",".join(str(row.kind) for row in rows)
    outbox.post(
        Event(
            name=RETENTION_PLANNED,
            key=f"retention:{workspace.pk}:{begins_at.timestamp()}:{kinds}",
            at=now,
            subscriptions=(RETENTION_PLANNED,),
            workspaces=(workspace.pk,),
            body=body,
            theirs=workspace.pk,
        )
    )
    if settings.EMAIL_URL:
        owners = User.objects.filter(
            memberships__workspace=workspace, memberships__role=Role.OWNER, is_active=True
        ).exclude(email="")
        OutgoingMail.objects.bulk_create(
            OutgoingMail(kind=MailKind.RETENTION, recipient=owner.email, user=owner, detail=_cut(text))
            for owner in owners
        )


def _cut(text: str) -> str:
    longest = OutgoingMail._meta.get_field("detail").max_length or len(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
