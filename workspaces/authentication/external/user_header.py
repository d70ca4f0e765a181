"""Signs in people whom a reverse proxy names in a header, such as Remote-User.

The header counts only on connections from the addresses of REMOTE_USER_PROXIES. A session that began by it
lasts as long as the proxy sends it: a copy of the cookie is useless elsewhere."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from workspaces.access import NO_WORKSPACE, may_enter
from workspaces.authentication.confirmation import SAFE_METHODS, set_vouched
from workspaces.authentication.external.accounts import (
    ExternalIdentity,
    SignInRefused,
    make_identity,
    sign_in_person,
)
from workspaces.authentication.external.configuration import PEER
from workspaces.authentication.factors import second_step
from workspaces.authentication.password_check import client_address, record_failure
from workspaces.authentication.sign_in_completion import complete_sign_in
from workspaces.models import User

ISSUER = "proxy"
WAY = "proxy"
# Name in a session of whom the proxy named when it began.
SUBJECT = "user_header"


class UserHeaderSignIn:
    """Middleware behind those of authentication and messages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Programs with a token act for the token's person.
        answer = None if "Authorization" in request.headers else _apply_header(request)
        return self._get_response(request) if answer is None else answer


def _apply_header(request: HttpRequest) -> HttpResponse | None:
    """Signs in or out as the header says; returns an answer if this request ends here."""
    subject = _trusted_value(request, settings.SIGN_IN.header.name)
    if isinstance(request.user, User):
        began_with = request.session.get(SUBJECT)
        if began_with is not None and began_with != subject:
            logout(request)
        else:
            set_vouched(request, is_vouched=began_with is not None)
            return None
    if not subject or request.method not in SAFE_METHODS:
        return None
    pending = second_step.pending_sign_in(request)
    if pending is not None and request.session.get(SUBJECT) == subject:
        return None
    return _sign_in(request, subject)


def _sign_in(request: HttpRequest, subject: str) -> HttpResponse | None:
    address = request.get_full_path()
    is_sign_in_page = request.path == reverse("sign-in")
    try:
        user = sign_in_person(_identity(request, subject))
        if not may_enter(user, address):
            raise SignInRefused(NO_WORKSPACE.format(name=user.get_username()))
    except SignInRefused as refusal:
        record_failure(subject, client_address(request), way=WAY, reason=refusal.message)
        if is_sign_in_page:
            # Every other page leads there.
            messages.error(request, refusal.message)
        return None
    answer = complete_sign_in(request, user, WAY, "/" if is_sign_in_page else address)
    request.session[SUBJECT] = subject
    return answer


def _identity(request: HttpRequest, subject: str) -> ExternalIdentity:
    header = settings.SIGN_IN.header
    groups = _trusted_value(request, header.groups)
    # Names of groups in LDAP contain commas.
    parts = groups.split(";" if ";" in groups else ",")
    return make_identity(
        ISSUER,
        subject,
        WAY,
        username=subject,
        display_name=_trusted_value(request, header.display_name),
        email=_trusted_value(request, header.mail),
        group_names=[part.strip() for part in parts if part.strip()],
    )


def _trusted_value(request: HttpRequest, name: str) -> str:
    """Returns what the proxy says in this header; "" if it comes from elsewhere, is missing, is there twice
    (a proxy that adds its own beside a client's), or is no text."""
    scope = getattr(request, "scope", {})
    if not name or not _is_proxy(str(scope.get(PEER, ""))):
        return ""
    wanted = name.lower().encode()
    values = [value for key, value in scope["headers"] if key.lower() == wanted]
    if len(values) != 1:
        return ""
    text = values[0].decode("utf-8", "replace").strip()
    return "" if "\ufffd" in text else text


def _is_proxy(address: str) -> bool:
    try:
        peer = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
        peer = peer.ipv4_mapped
    return any(peer in network for network in settings.SIGN_IN.header.proxies)
