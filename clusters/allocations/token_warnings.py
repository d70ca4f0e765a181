"""Tells people that a token for Slurm ends soon, once for each token."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q

from clusters.allocations import slurm_tokens
from clusters.models import Cluster, SlurmToken
from workspaces.models import Membership, Workspace
from workspaces.notifications import outbox
from workspaces.notifications.events import TOKEN_ENDING, Event


def warn_of_ends(now: datetime) -> None:
    due = SlurmToken.objects.filter(
        warned_at=None, expires_at__gt=now, expires_at__lt=now + slurm_tokens.WARN_BEFORE
    )
    for token in due.select_related("cluster", "person"):
        if slurm_tokens.ends_soon(token, now) and due.filter(pk=token.pk).update(warned_at=now):
            outbox.post(_event(token, now))


def sentence_of(token: SlurmToken) -> str:
    end = f"{token.expires_at:%Y-%m-%d %H:%M} UTC"
    if token.person is None:
        page = slurm_tokens.settings_page(token.cluster)
        return (
            f"The token of {token.account} with which the hub looks at the Slurm of {token.cluster.name} "
            f"expires at {end}. Then the hub hears nothing of its jobs any more, and no runs start. Enter a "
            f"new one at {page}."
        )
    return (
        f"The token of {token.account} for the Slurm of {token.cluster.name} expires at {end}. Then no more "
        f"runs of {token.person.get_username()} are submitted there, and none in its queue can be canceled. "
        f"Enter a new one at {slurm_tokens.token_page(token.cluster)}."
    )


def _event(token: SlurmToken, now: datetime) -> Event:
    sentence = sentence_of(token)

    def body(_: int) -> dict[str, Any]:
        return {
            "event": TOKEN_ENDING,
            "at": now.isoformat(),
            "text": f"[token] {sentence}",
            "url": f"{settings.PUBLIC_URL}/clusters/{token.cluster.name}/",
            "alert": None,
            "node": None,
            "gpu": None,
            "run": None,
        }

    return Event(
        name=TOKEN_ENDING,
        key=f"slurm-token:{token.pk}:{token.expires_at.timestamp():.0f}",
        at=now,
        subscriptions=(TOKEN_ENDING,),
        workspaces=_workspaces(token.cluster, token.person_id),
        body=body,
        person=token.person_id,
    )


def _workspaces(cluster: Cluster, person_id: int | None) -> list[int]:
    """Returns those that may use the cluster; of a person's token, of which that person is a member."""
    may_use = cluster.workspaces.values_list("pk", flat=True)
    chosen = Workspace.objects.filter(pk__in=may_use) if may_use.exists() else Workspace.objects.all()
    if person_id is not None:
        chosen = chosen.filter(Q(pk__in=Membership.objects.filter(user=person_id).values("workspace")))
    return list(chosen.values_list("pk", flat=True))
