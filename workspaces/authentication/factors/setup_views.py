"""The page on which people set up their second factors."""

from __future__ import annotations

from importlib import import_module
from typing import ParamSpec

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from workspaces.access import Guarded, Open, WorkspaceRequest, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.authentication.factors import proof, recovery, removal, totp
from workspaces.authentication.factors.forms import PasskeyForm, SetupCodeForm
from workspaces.authentication.factors.relying_party import passkey_obstacle
from workspaces.http.secret_pages import never_store
from workspaces.models import Passkey
from workspaces.states import Role

P = ParamSpec("P")
MAX_PASSKEYS = 20


def _changes_factors(view: Guarded[P]) -> Open[P]:
    """Decorates a view that changes the person's own factors: by POST, and with the password."""
    return needs(Role.VIEWER)(require_POST(requires_password(view)))


@needs(Role.VIEWER)
@require_GET
def factors(request: WorkspaceRequest) -> HttpResponse:
    return _factors(request)


@_changes_factors
def totp_begin(request: WorkspaceRequest) -> HttpResponse:
    totp.begin_setup(request.principal.user)
    return redirect("factors")


@_changes_factors
def totp_confirm(request: WorkspaceRequest) -> HttpResponse:
    user, form = request.principal.user, SetupCodeForm(request.POST, label_suffix="")
    if form.is_valid():
        if totp.confirm_setup(user, "".join(form.cleaned_data["code"].split())):
            return _added(request, "Your app is a second factor now.")
        form.add_error("code", "This is not the code of the app now. Is the clock of the device right?")
    return _factors(request, code_form=form)


@_changes_factors
def totp_remove(request: WorkspaceRequest) -> HttpResponse:
    totp.remove(request.principal.user)
    return redirect("factors")


@_changes_factors
def passkey_begin(request: WorkspaceRequest) -> HttpResponse:
    """Shows the form whose script asks the browser for a new passkey."""
    return _begin_passkey(request, PasskeyForm(label_suffix=""))


@_changes_factors
def passkey_add(request: WorkspaceRequest) -> HttpResponse:
    user, form = request.principal.user, PasskeyForm(request.POST, label_suffix="")
    challenge = proof.take_challenge(request)
    if Passkey.objects.filter(user=user).count() >= MAX_PASSKEYS:
        form.add_error(None, f"You have {MAX_PASSKEYS} passkeys; remove one first.")
    elif form.is_valid():
        fields = form.cleaned_data
        if challenge and proof.passkeys_module().add(user, fields["name"], fields["credential"], challenge):
            return _added(request, f"The passkey {fields['name']} is a second factor now.")
        form.add_error(None, "The browser's answer was not accepted. Try again.")
    return _begin_passkey(request, form)


@_changes_factors
def passkey_remove(request: WorkspaceRequest, pk: int) -> HttpResponse:
    passkey = get_object_or_404(Passkey.objects.select_related("user"), pk=pk, user=request.principal.user)
    removal.remove_passkey(passkey)
    messages.success(request, f"The passkey {passkey.name} is removed.")
    return redirect("factors")


@_changes_factors
def recovery_create(request: WorkspaceRequest) -> HttpResponse:
    user = request.principal.user
    if not proof.factors_of(user):
        return redirect("factors")
    return _factors(request, new_codes=recovery.new_codes(user))


def _added(request: WorkspaceRequest, message: str) -> HttpResponse:
    """Answers with the page; the first factor brings recovery codes, shown once."""
    user = request.principal.user
    messages.success(request, message)
    if recovery.count(user):
        return redirect("factors")
    return _factors(request, new_codes=recovery.new_codes(user))


def _begin_passkey(request: WorkspaceRequest, form: PasskeyForm) -> HttpResponse:
    if passkey_obstacle():
        return redirect("factors")
    options, challenge = proof.passkeys_module().creation_options(request.principal.user)
    proof.keep_challenge(request, challenge)
    return _factors(request, passkey_form=form, options=options)


def _factors(request: WorkspaceRequest, **extra: object) -> HttpResponse:
    user = request.principal.user
    secret = totp.setup_secret(user)
    context = {
        "factors": proof.factors_of(user),
        "passkeys": Passkey.objects.filter(user=user).order_by("pk"),
        "obstacle": passkey_obstacle(),
        "secret": secret,
        "code_form": SetupCodeForm(label_suffix=""),
        **extra,
    }
    if secret:
        # Imported only here: few people ever see a QR code.
        code = import_module("segno").make(totp.setup_uri(user, secret), error="m")
        context["qr_code"] = code.svg_data_uri(scale=5, border=2, dark="#000", light="#fff")
    is_wrong = any(getattr(form, "is_bound", False) for form in extra.values())
    response = render(request, "workspaces/factors/factors.html", context, status=400 if is_wrong else 200)
    # It may hold a secret or codes.
    never_store(response)
    return response
