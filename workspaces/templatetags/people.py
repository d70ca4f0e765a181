"""The workspaces and invitations that a person finds in their menu on every page."""

from __future__ import annotations

from typing import NamedTuple

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
    if not isinstance(request.user, User):
        return Memberships([], 0)
    joined = list(Workspace.objects.filter(memberships__user=request.user).order_by("memberships__pk"))
    invitations = Invitation.objects.filter(user=request.user).count()
    return Memberships(joined if len(joined) > 1 else [], invitations)
