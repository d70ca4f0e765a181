"""A program without a browser gets a token that a person allows elsewhere (RFC 8628).

The program asks for two codes, shows one to the person, and polls with the other. The person opens /device/,
sees which program asks from where and for what, and allows or refuses. The token is made when the program
fetches it, so it is stored nowhere in between."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.utils import timezone

from workspaces import audit, tokens
from workspaces.access import Principal, membership_principal
from workspaces.authentication.token_text import digest, new_token
from workspaces.models import DeviceLogin, Workspace
from workspaces.states import TokenScope

# Without vowels and digits: no words, and nothing that looks like something else.
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
CODE_LENGTH = 8
LIFETIME = timedelta(minutes=10)
INTERVAL_S = 5
SLOWER_BY_S = 5
MAX_PENDING = 500
MAX_PENDING_PER_ADDRESS = 20
PREFIX = "thd"
PENDING, ALLOWED, REFUSED = "pending", "allowed", "refused"


class TooManyRequests(Exception):
    """There are too many requests that nobody has answered. The message is a sentence."""


class DeviceError(Exception):
    """The program gets no token now. `code` is that of RFC 8628; the message is a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class IssuedToken(NamedTuple):
    """`text`: the token, stored nowhere. `expires_in_s`: None if it does not expire."""

    text: str
    scope: TokenScope
    workspace: Workspace
    expires_in_s: int | None


def begin(name: str, scope: TokenScope, address: str) -> tuple[DeviceLogin, str]:
    """Stores a request, and returns it with the program's code, which is stored nowhere. Raises
    TooManyRequests."""
    now = timezone.now()
    waiting = DeviceLogin.objects.filter(state=PENDING, expires_at__gt=now)
    if waiting.filter(address=address).count() >= MAX_PENDING_PER_ADDRESS or waiting.count() >= MAX_PENDING:
        raise TooManyRequests("Too many programs wait to be allowed; try again in ten minutes.")
    code = new_token(PREFIX)
    fields = {"digest": digest(code), "name": name, "scope": scope, "address": address}
    while True:
        user_code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
        try:
            with transaction.atomic():
                return (
                    DeviceLogin.objects.create(
                        **fields, user_code=user_code, interval_s=INTERVAL_S, expires_at=now + LIFETIME
                    ),
                    code,
                )
        except IntegrityError:
            continue  # another request has this code, once in many millions of times


def format_code(user_code: str) -> str:
    """Returns the code as people read it: in two halves."""
    return f"{user_code[: CODE_LENGTH // 2]}-{user_code[CODE_LENGTH // 2 :]}"


def find_pending(user_code: str) -> DeviceLogin | None:
    """Returns the request with this code, however it is typed; None if there is none that waits."""
    code = "".join(letter for letter in user_code.upper() if letter in ALPHABET)
    waiting = DeviceLogin.objects.filter(state=PENDING, expires_at__gt=timezone.now())
    return waiting.filter(user_code=code).first() if len(code) == CODE_LENGTH else None


def answer(who: Principal, request: DeviceLogin, *, is_allowed: bool) -> bool:
    """Allows the request for the workspace in which `who` acts, or refuses it. Returns False if it was
    answered or has expired meanwhile."""
    waiting = DeviceLogin.objects.filter(pk=request.pk, state=PENDING, expires_at__gt=timezone.now())
    with transaction.atomic():
        state = ALLOWED if is_allowed else REFUSED
        if not waiting.update(state=state, user=who.user, workspace=who.workspace):
            return False
        if not is_allowed:
            audit.record(
                who.user, "token.device_refused", request.name, who.workspace, address=request.address
            )
    return True


def fetch(code: str) -> IssuedToken:
    """Returns the token for the program with this code, once. Raises DeviceError while there is none."""
    error: DeviceError | None = None
    with transaction.atomic():
        request = (
            DeviceLogin.objects.select_for_update(of=("self",))
            .select_related("user", "workspace")
            .filter(digest=digest(code))
            .first()
        )
        if request is None:
            raise DeviceError("invalid_grant", "There is no such request; begin again.")
        try:
            return _fetch(request)
        except DeviceError as refusal:
            # What the request learned, such as that it was polled too often, is stored all the same.
            error = refusal
    raise error


def _fetch(request: DeviceLogin) -> IssuedToken:
    now = timezone.now()
    if request.expires_at <= now:
        request.delete()
        raise DeviceError("expired_token", "Nobody has allowed it within ten minutes; begin again.")
    if request.state == REFUSED:
        request.delete()
        raise DeviceError("access_denied", "The person has refused it.")
    is_early = (
        request.polled_at is not None and (now - request.polled_at).total_seconds() < request.interval_s
    )
    if request.state == PENDING or request.user is None or request.workspace is None:
        _note_poll(request, is_early)
        if is_early:
            raise DeviceError("slow_down", f"Ask every {request.interval_s} seconds.")
        raise DeviceError("authorization_pending", "Nobody has allowed it yet.")
    request.delete()
    if not request.user.is_active or membership_principal(request.user, request.workspace) is None:
        raise DeviceError("access_denied", "The person who allowed it has left.")
    scope, lifetime = TokenScope(request.scope), timedelta(days=tokens.DEFAULT_LIFETIME_DAYS)
    token, text = tokens.issue(request.user, request.workspace, request.name, scope=scope, lifetime=lifetime)
    audit.record(
        request.user,
        "token.created",
        token.name,
        request.workspace,
        scope=scope.value,
        device_address=request.address,
    )
    return IssuedToken(text, scope, request.workspace, int(lifetime.total_seconds()))


def _note_poll(request: DeviceLogin, is_early: bool) -> None:
    request.polled_at = timezone.now()
    if is_early:
        request.interval_s += SLOWER_BY_S
    request.save(update_fields=["polled_at", "interval_s"])


def delete_expired() -> None:
    """Deletes requests that nobody can answer or fetch any more."""
    DeviceLogin.objects.filter(expires_at__lte=timezone.now() - LIFETIME).delete()
