"""Asks a person for a second factor: an app's code, a recovery code or a passkey. Throttled per person,
whatever their address: only who knows the password gets here."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from django.http import HttpRequest

from workspaces.authentication import login_throttle
from workspaces.authentication.factors import recovery, totp
from workspaces.authentication.password_check import client_address, record_failure
from workspaces.models import Passkey, User

PURPOSE = "second factor"
CHALLENGE = "passkey_challenge"
CHALLENGE_VALID_S = 300
PASSKEYS = "workspaces.authentication.factors.passkeys"
MAX_CODE, MAX_CREDENTIAL = 40, 20_000
CODE_DIGITS = 6


class Factors(NamedTuple):
    """What a person can prove besides the password. `codes`: recovery codes that are left."""

    has_totp: bool
    passkeys: int
    codes: int

    def __bool__(self) -> bool:
        return self.has_totp or self.passkeys > 0


class PasskeysModule(Protocol):
    """What PASSKEYS offers; see there."""

    def creation_options(self, user: User) -> tuple[str, str]: ...

    def add(self, user: User, name: str, credential: str, challenge: str) -> bool: ...

    def request_options(self, user: User) -> tuple[str, str]: ...

    def accept_answer(self, user: User, credential: str, challenge: str) -> bool: ...


def factors_of(user: User) -> Factors:
    return Factors(totp.has_totp(user), Passkey.objects.filter(user=user).count(), recovery.count(user))


def passkeys_module() -> PasskeysModule:
    return cast("PasskeysModule", import_module(PASSKEYS))


def accept_proof(request: HttpRequest, user: User, code: str, credential: str) -> bool:
    """Returns whether the person has proved a second factor by a typed code or by a browser's answer for a
    passkey. Raises TooManyAttempts."""
    if credential:
        challenge = take_challenge(request)
        if not challenge or len(credential) > MAX_CREDENTIAL:
            return False
        return _throttled(request, user, lambda: passkeys_module().accept_answer(user, credential, challenge))
    typed = "".join(code.split())
    if not typed or len(typed) > MAX_CODE:
        return False
    if typed.isascii() and typed.isdigit() and len(typed) == CODE_DIGITS:
        return _throttled(request, user, lambda: totp.accept_code(user, typed))
    return _throttled(request, user, lambda: recovery.use_code(user, typed))


def keep_challenge(request: HttpRequest, challenge: str) -> None:
    """Keeps the challenge of a passkey in the session, for one answer."""
    request.session[CHALLENGE] = [challenge, time.time()]


def take_challenge(request: HttpRequest) -> str:
    """Returns the challenge of this session, once; "" without one or if it is old."""
    challenge, at = request.session.pop(CHALLENGE, ["", 0.0])
    return str(challenge) if 0 <= time.time() - at < CHALLENGE_VALID_S else ""


def _throttled(request: HttpRequest, user: User, compare: Callable[[], bool]) -> bool:
    # The person stands in the place of the address: from wherever the attempts come, they count together.
    name = user.get_username()
    attempt = login_throttle.count_attempt(name, f"person {user.pk}", purpose=PURPOSE)
    if compare():
        login_throttle.record_success(attempt)
        return True
    record_failure(name, client_address(request), way=PURPOSE)
    return False
