"""A person's sessions in browsers: noted while they are used, listed in the settings, and ended one by one.

Django's own table has no column for the person or the browser, so a second one names them. A session that
began before an upgrade to this version is noted at its first request."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import cast

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from workspaces import audit, process_caches
from workspaces.access import access_changed
from workspaces.authentication.browsers import browser_name
from workspaces.authentication.password_check import client_address
from workspaces.database.outages import optional_write
from workspaces.models import BrowserSession, User

# A page that is open asks every few seconds.
NOTED_EVERY_S = 300.0
MAX_NOTED = 10_000
MAX_ADDRESS_LENGTH = 64
WAY = "sign_in_way"

# Session key -> when this process noted its use last, in seconds of the monotonic clock.
_noted: dict[str, float] = {}
process_caches.register(_noted.clear)


class NoteSessions:
    """Middleware behind that of authentication: notes when, where and in which browser a session is used."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        key_before = request.session.session_key
        response = self._get_response(request)
        # Most static files and scripts never look at the session.
        if request.session.accessed and isinstance(request.user, User):
            key = request.session.session_key
            if key_before and key and key_before != key:
                _rename(key_before, key)
            if key and time.monotonic() - _noted.get(key, -NOTED_EVERY_S) >= NOTED_EVERY_S:
                _note(request, request.user, key)
        return response


def set_way(request: HttpRequest, way: str) -> None:
    """Notes how the person signs in with this request, for the audit trail."""
    setattr(request, WAY, way)


# The parameters are those of Django's signals.
def note_sign_in(sender: object, request: HttpRequest, user: User, **kwargs: object) -> None:  # noqa: ARG001
    """Receives the signal `user_logged_in`."""
    way = getattr(request, WAY, "")
    audit.record(user, "person.signed_in", user.get_username(), None, **_where(request), way=way)
    if request.session.session_key:
        _note(request, user, request.session.session_key)


def forget_sign_out(sender: object, request: HttpRequest, **kwargs: object) -> None:  # noqa: ARG001
    """Receives the signal `user_logged_out`, which is sent before the session is deleted."""
    if isinstance(request.user, User):
        audit.record(request.user, "person.signed_out", request.user.get_username(), None, **_where(request))
    BrowserSession.objects.filter(session_key=request.session.session_key or "").delete()


def own_sessions(user: User) -> list[BrowserSession]:
    """Returns the sessions in which this person is signed in now, the one used last first."""
    rows = BrowserSession.objects.filter(user=user).order_by("-last_seen_at", "-pk")
    valid = {
        session.session_key
        for session in Session.objects.filter(
            session_key__in=rows.values("session_key"), expire_date__gt=timezone.now()
        )
        if _is_valid(session, user)
    }
    return [row for row in rows if row.session_key in valid]


@transaction.atomic
def end_session(user: User, row: BrowserSession) -> None:
    """Ends this session of the person, and closes its sockets."""
    Session.objects.filter(session_key=row.session_key).delete()
    row.delete()
    audit.record(user, "session.ended", user.get_username(), browser=row.browser, address=row.address)
    access_changed(user)


@transaction.atomic
def end_other_sessions(user: User, key: str) -> int:
    """Ends all sessions of the person but the one with this key, and returns how many there were. Also finds
    those that are not noted yet, so it reads every session of the hub."""
    others = [
        session.session_key
        for session in Session.objects.exclude(session_key=key).filter(expire_date__gt=timezone.now())
        if session.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    count = sum(_is_valid(session, user) for session in Session.objects.filter(session_key__in=others))
    Session.objects.filter(session_key__in=others).delete()
    BrowserSession.objects.filter(user=user).exclude(session_key=key).delete()
    audit.record(user, "session.others_ended", user.get_username(), count=count)
    access_changed(user)
    return count


def end_all_sessions(user: User) -> None:
    """Ends every session of a person, for an operator or after a new password. The caller records why and
    closes the sockets."""
    keys = [
        session.session_key
        for session in Session.objects.filter(expire_date__gt=timezone.now())
        if session.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    Session.objects.filter(session_key__in=keys).delete()
    BrowserSession.objects.filter(user=user).delete()


def delete_expired() -> None:
    """Deletes what is noted of sessions that Django has deleted."""
    # A session that has just begun may not be in Django's table yet.
    BrowserSession.objects.filter(last_seen_at__lt=timezone.now() - timedelta(days=1)).exclude(
        session_key__in=Session.objects.values("session_key")
    ).delete()


def _where(request: HttpRequest) -> dict[str, str]:
    browser = browser_name(request.headers.get("User-Agent", ""))
    return {"address": client_address(request)[:MAX_ADDRESS_LENGTH], "browser": browser}


def _rename(key_before: str, key: str) -> None:
    """Lets the row of a session follow its new key, which it gets when the password was typed again. After a
    sign-in the new key is noted already."""
    row = BrowserSession.objects.filter(session_key=key_before)
    if BrowserSession.objects.filter(session_key=key).exists():
        row.delete()
    else:
        row.update(session_key=key)


def _note(request: HttpRequest, user: User, key: str) -> None:
    if len(_noted) >= MAX_NOTED:
        _noted.clear()
    _noted[key] = time.monotonic()
    values = {
        "user_id": user.pk,
        "browser": browser_name(request.headers.get("User-Agent", "")),
        "address": client_address(request)[:MAX_ADDRESS_LENGTH],
        "last_seen_at": timezone.now(),
    }
    with optional_write():
        BrowserSession.objects.update_or_create(session_key=key, defaults=values)


def _is_valid(session: Session, user: User) -> bool:
    """Returns whether the session is the person's and began after the last change of their password."""
    values = session.get_decoded()
    password_hash = cast("str", values.get(HASH_SESSION_KEY, ""))
    return values.get(SESSION_KEY) == str(user.pk) and constant_time_compare(
        password_hash, user.get_session_auth_hash()
    )
