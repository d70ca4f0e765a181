"""The page on which a person allows or refuses a token to a program that shows a code."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from workspaces.access import WorkspaceRequest, needs
from workspaces.authentication import login_throttle
from workspaces.authentication.confirmation import ask_for_password
from workspaces.authentication.delays import TooManyAttempts
from workspaces.authentication.password_check import client_address
from workspaces.device_login import device_requests
from workspaces.models import DeviceLogin
from workspaces.states import Role, TokenScope

UNKNOWN = (
    "No program waits with this code. Compare it with what the program shows; it is valid for ten minutes."
)


@require_GET
@needs(Role.VIEWER)
def device(request: WorkspaceRequest) -> HttpResponse:
    code = request.GET.get("code", "")[:20]
    if not code:
        return _page(request)
    try:
        waiting = _waiting(request, code)
    except TooManyAttempts as delay:
        return _page(request, code=code, error=delay.message, status=429)
    if waiting is None:
        return _page(request, code=code, error=UNKNOWN, status=404)
    return _page(request, code=code, waiting=waiting)


@needs(Role.VIEWER)
@require_POST
def answer(request: WorkspaceRequest) -> HttpResponse:
    is_allowed = request.POST.get("answer") == "allow"
    # Refusing gives nothing away, so it takes a single click.
    question = ask_for_password(request) if is_allowed else None
    if question is not None:
        return question
    try:
        waiting = _waiting(request, request.POST.get("code", "")[:20])
    except TooManyAttempts as delay:
        return _page(request, error=delay.message, status=429)
    if waiting is None or not device_requests.answer(request.principal, waiting, is_allowed=is_allowed):
        return _page(request, error=UNKNOWN, status=400)
    if is_allowed:
        messages.success(
            request, f"{waiting.name} gets its token within seconds. It is listed under Settings, API tokens."
        )
    else:
        messages.success(request, f"{waiting.name} gets no token.")
    return redirect("device")


def _waiting(request: WorkspaceRequest, code: str) -> DeviceLogin | None:
    """Returns the request with the code. Who tries many codes has to wait. Raises TooManyAttempts."""
    attempt = login_throttle.count_attempt(f"device code of {request.user.pk}", client_address(request))
    waiting = device_requests.find_pending(code)
    if waiting is not None:
        login_throttle.take_back(attempt)
    return waiting


def _page(
    request: WorkspaceRequest,
    *,
    code: str = "",
    waiting: DeviceLogin | None = None,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    context = {
        "code": code,
        "error": error,
        "waiting": waiting,
        "user_code": device_requests.format_code(waiting.user_code) if waiting else "",
        "scope": TokenScope(waiting.scope).words if waiting else "",
        "principal": request.principal,
    }
    return render(request, "workspaces/device.html", context, status=status)
