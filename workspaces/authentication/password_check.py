"""Compares a typed password with a person's own, within the limits of the throttle. Every page that asks for
a password uses this."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from cachetools import TTLCache
from django.contrib.auth import authenticate
from django.http import HttpRequest

from workspaces import audit, process_caches
from workspaces.authentication import login_throttle
from workspaces.authentication.delays import HashingBusy
from workspaces.authentication.password_hashing import equalize_failure
from workspaces.models import User

T = TypeVar("T")
# Names and addresses whose failures were recorded within the last minute. Further ones go unrecorded: an
# attack with ever new names must not fill the disk.
MAX_RECORDED = 100
_recorded_failures: TTLCache[tuple[str, str], bool] = TTLCache(MAX_RECORDED, 60.0)
_recorded_lock = threading.Lock()
process_caches.register(_recorded_failures.clear)


def sign_in(request: HttpRequest | None, name: str, password: str) -> User | None:
    """Returns the active person with this name and password, or None. Raises AuthenticationDelayed."""

    def compare() -> User | None:
        user = authenticate(request, username=name, password=password)
        return user if isinstance(user, User) else None

    user = _throttled(name, password, client_address(request), compare)
    if user is None:
        record_failure(name, client_address(request))
    return user


def is_password_of(request: HttpRequest, user: User, password: str) -> bool:
    """Returns whether `password` is that of `user`, who is signed in. Raises AuthenticationDelayed."""
    name = user.get_username()
    return (
        _throttled(name, password, client_address(request), lambda: user.check_password(password) or None)
        is not None
    )


def client_address(request: HttpRequest | None) -> str:
    """Returns the address of the client as the web server, or a trusted proxy, reports it; "" behind a Unix
    socket."""
    return "" if request is None else str(request.META.get("REMOTE_ADDR", ""))


def record_failure(name: str, address: str, **detail: object) -> None:
    """Adds a failed sign-in to the audit trail, once a minute for a name at an address: an attack must not
    fill it."""
    key = (name.lower()[:150], address)
    with _recorded_lock:
        _recorded_failures.expire()
        if key in _recorded_failures or len(_recorded_failures) >= MAX_RECORDED:
            return
        _recorded_failures[key] = True
    audit.record("somebody", "person.sign_in_failed", name[:150], None, address=address, **detail)


def _throttled(name: str, password: str, address: str, compare: Callable[[], T | None]) -> T | None:
    attempt = login_throttle.count_attempt(name, address)
    try:
        user = compare()
    except HashingBusy:
        login_throttle.take_back(attempt)
        raise
    if user is not None:
        login_throttle.record_success(attempt)
        return user
    # The attempt is decided; only how long the answer takes could still tell something.
    with suppress(HashingBusy):
        equalize_failure(name, password)
    return None
