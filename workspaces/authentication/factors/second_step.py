"""The second step of signing in, for people with a second factor: until then the session is nobody's."""

from __future__ import annotations

import time
from typing import NamedTuple

from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from workspaces.access import has_second_factor
from workspaces.models import User

PENDING = "pending_sign_in"
VALID_S = 10 * 60


class PendingSignIn(NamedTuple):
    """A person who has passed the first step. `way`: how."""

    user: User
    way: str
    next_address: str


def needs_second_step(user: User) -> bool:
    return has_second_factor(user)


def begin(request: HttpRequest, user: User, way: str, next_address: str) -> None:
    """Notes in the session that the first step is done."""
    # Whoever was signed in before in this browser is signed out; the key changes with the rights.
    request.session.flush()
    request.session[PENDING] = {
        "user": user.pk,
        "way": way,
        "next": next_address,
        "at": time.time(),
        # A password that is changed meanwhile makes the first step void.
        "hash": user.get_session_auth_hash(),
    }


def pending_sign_in(request: HttpRequest) -> PendingSignIn | None:
    """Returns who has passed the first step in this session within the last ten minutes, or None."""
    noted = request.session.get(PENDING)
    if not isinstance(noted, dict) or not 0 <= time.time() - noted["at"] < VALID_S:
        return None
    user = User.objects.filter(pk=noted["user"], is_active=True).first()
    if user is None or not constant_time_compare(noted["hash"], user.get_session_auth_hash()):
        return None
    return PendingSignIn(user, noted["way"], noted["next"])


def forget(request: HttpRequest) -> None:
    request.session.pop(PENDING, None)
