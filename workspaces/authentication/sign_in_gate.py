"""Refuses sign-ins that have to wait before Django, and lets few of the others in at the same time.

Under an attack most attempts have to wait. Each that passed through Django would take a thread of its own, a
database connection and 10 ms of the interpreter that answers nodes' reports, too. `login_throttle` decides in
both places by the same counts: what the gate lets pass is counted, and refused if need be, where its password
is compared."""

from __future__ import annotations

import anyio
from django.conf import settings
from django.contrib.auth.forms import UsernameField
from django.core.exceptions import TooManyFieldsSent
from django.http import QueryDict
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from live.origins import header
from workspaces.authentication import login_throttle
from workspaces.authentication.delays import AuthenticationDelayed, HashingBusy, TooManyAttempts
from workspaces.authentication.password_hashing import RETRY_AFTER_S
from workspaces.authentication.refused_page import refused_sign_in
from workspaces.http.problems import Problem
from workspaces.http.requests import read_body
from workspaces.http.threads import in_limited_threads

MAX_FORM_BYTES = 64 * 1024
SIGN_INS_AT_ONCE = 2
# As many are compared within about two seconds. Further ones are asked to try again.
MAX_WAITING = 64
# As many are looked up within about a second.
MAX_LOOKUPS_WAITING = 512

_lookups = anyio.CapacityLimiter(1)
_sign_ins = anyio.CapacityLimiter(SIGN_INS_AT_ONCE)


class SignInGate:
    """Wraps Django's application. Only the form of the sign-in page is looked at."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # What htmx sends is answered without a look at the form.
        if not _is_sign_in(scope) or header(scope, "hx-request"):
            await self._app(scope, receive, send)
            return
        try:
            body = await read_body(Request(scope, receive), MAX_FORM_BYTES)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        except ClientDisconnect:
            return
        fields = _fields(scope, body)
        try:
            await _require_free(fields, scope)
            if _sign_ins.statistics().tasks_waiting >= MAX_WAITING:
                raise HashingBusy(RETRY_AFTER_S)
            async with _sign_ins:
                # Others have failed in the meantime.
                await _require_free(fields, scope)
                await self._app(scope, _again(body, receive), send)
        except AuthenticationDelayed as delay:
            await refused_sign_in(fields, delay)(scope, receive, send)


def _is_sign_in(scope: Scope) -> bool:
    return (
        scope["type"] == "http"
        and scope["method"] == "POST"
        and scope["path"] == settings.LOGIN_URL
        and settings.SIGN_IN.has_passwords
    )


def _fields(scope: Scope, body: bytes) -> dict[str, str]:
    """Returns the fields of a form as browsers send it. Of another kind of form the name remains unknown, so
    that it has to wait as for a name that nobody has."""
    if not header(scope, "content-type").startswith("application/x-www-form-urlencoded"):
        return {}
    try:
        return {name: str(value) for name, value in QueryDict(body).items()}
    except TooManyFieldsSent:
        return {}


async def _require_free(fields: dict[str, str], scope: Scope) -> None:
    """Raises AuthenticationDelayed if the attempt has to wait."""
    if _lookups.statistics().tasks_waiting >= MAX_LOOKUPS_WAITING:
        raise HashingBusy(RETRY_AFTER_S)
    # As Django's form reads it.
    name = UsernameField().to_python(fields.get("username", "")) or ""
    client = scope.get("client")
    wait = await in_limited_threads(
        _lookups, login_throttle.seconds_to_wait, name, client[0] if client else ""
    )
    if wait:
        raise TooManyAttempts(wait)


def _again(body: bytes, receive: Receive) -> Receive:
    """Returns a `receive` that gives the body that has been read, and then what follows."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again
