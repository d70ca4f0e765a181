"""The workspaces and invitations that a person finds in their menu on every page."""

from __future__ import annotations

from typing import NamedTuple, cast

from django import template
from django.http import HttpRequest

from workspaces.models import Invitation, User, Workspace

register = template.Library()


class Memberships(NamedTuple):
    """`workspaces`: those to choose from, in the order in which the person joined; empty for fewer than two.
    `invitations`: their number."""

    workspaces: list[Workspace]
    invitations: int


@register.simple_tag
def memberships_of(request: HttpRequest) -> Memberships:
    # The menu is shown only to a person who is signed in.
    user = cast("User", request.user)
    joined = list(Workspace.objects.filter(memberships__user=user).order_by("memberships__pk"))
    invitations = Invitation.objects.filter(user=user).count()
    return Memberships(joined if len(joined) > 1 else [], invitations)
