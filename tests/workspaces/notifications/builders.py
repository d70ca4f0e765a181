"""A channel, and an event that it receives."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from tests.people import make_workspace
from workspaces.models import Channel
from workspaces.notifications.events import Event


def channel(target: str, *events: str, kind: str = "webhook", **changed: object) -> Channel:
    fields = {
        "workspace": make_workspace(),
        "kind": kind,
        "name": "ops",
        "target": target,
        "events": events or ["run.failed"],
    }
    return Channel.objects.create(**{**fields, **changed})


def event(key: str = "run:1", name: str = "run.failed", at: datetime | None = None) -> Event:
    body = {"event": name, "text": f"[failed] {key}", "url": "http://hub/runs/1/"}
    return Event(
        name,
        key,
        at or timezone.now(),
        (name,),
        (make_workspace().pk,),
        lambda _: body,
        theirs=make_workspace().pk,
    )
