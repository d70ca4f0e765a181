"""Pages for a person's display name and mail address, and for a password that was forgotten."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from workspaces import audit
from workspaces.access import WorkspaceRequest, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.authentication.delays import TooManyAttempts
from workspaces.authentication.external import disconnection
from workspaces.authentication.external.disconnection import DisconnectRefused
from workspaces.authentication.password_check import client_address
from workspaces.http.secret_pages import never_store
from workspaces.mail import mail_addresses, password_reset
from workspaces.mail.errors import MailError
from workspaces.mail.forms import ForgotForm, MailForm, ProfileForm, sentence
from workspaces.models import MailConfirmation, User
from workspaces.states import Role


@needs(Role.VIEWER)
def profile(request: WorkspaceRequest) -> HttpResponse:
    """Shows the profile, and changes the display name."""
    if request.method != "POST":
        return _profile(request)
    user, form = request.principal.user, ProfileForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _profile(request, profile_form=form)
    name = form.cleaned_data["display_name"]
    if User.objects.filter(pk=user.pk).exclude(display_name=name).update(display_name=name):
        audit.record(user, "person.renamed", user.get_username(), display_name=name)
    messages.success(request, "Your profile is saved.")
    return redirect("profile")


@needs(Role.VIEWER)
@require_POST
@requires_password
def mail_request(request: WorkspaceRequest) -> HttpResponse:
    form = MailForm(request.POST, label_suffix="")
    if form.is_valid():
        try:
            mail_addresses.request_address(request.principal.user, form.cleaned_data["address"])
        except MailError as error:
            form.add_error("address", sentence(error, "This address"))
        else:
            messages.success(request, "A link is on its way to the address. Open it within a day.")
            return redirect("profile")
    return _profile(request, mail_form=form)


@needs(Role.VIEWER)
@require_POST
@requires_password
def mail_remove(request: WorkspaceRequest) -> HttpResponse:
    mail_addresses.remove_address(request.principal.user)
    messages.success(request, "No mail address is stored for you.")
    return redirect("profile")


@needs(Role.VIEWER)
@require_POST
@requires_password
def account_disconnect(request: WorkspaceRequest, pk: int) -> HttpResponse:
    """Ends signing in by one of the person's accounts at a provider or a proxy."""
    user = request.principal.user
    account = get_object_or_404(disconnection.connected_accounts(user), pk=pk)
    try:
        disconnection.disconnect(user, account)
    except DisconnectRefused as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, f"You cannot sign in with {disconnection.label(account)} any more.")
    return redirect("profile")


@login_not_required
def mail_confirm(request: HttpRequest, text: str) -> HttpResponse:
    """Confirms a mail address. Only the button does, because mail programs open links by themselves."""
    confirmation, error = mail_addresses.find_confirmation(text), ""
    if confirmation is None:
        return render(request, "workspaces/mail/link_gone.html", {"is_alone": True}, status=404)
    if request.method == "POST":
        try:
            if mail_addresses.confirm_address(confirmation):
                messages.success(
                    request, f"{confirmation.address} is the address of {confirmation.user} now."
                )
                return redirect("profile")
            return render(request, "workspaces/mail/link_gone.html", {"is_alone": True}, status=404)
        except MailError as refusal:
            error = sentence(refusal, "This address")
    context = {"confirmation": confirmation, "error": error, "is_alone": True}
    response = render(request, "workspaces/mail/confirm.html", context, status=409 if error else 200)
    never_store(response)
    return response


@login_not_required
def password_forgot(request: HttpRequest) -> HttpResponse:
    """Asks for a link for a new password by mail. The answer does not depend on who has an account."""
    form = ForgotForm(request.POST or None, label_suffix="")
    sends_mail = bool(settings.EMAIL_URL) and settings.SIGN_IN.has_passwords
    context = {"form": form, "is_alone": True, "sends_mail": sends_mail}
    if sends_mail and form.is_valid():
        try:
            password_reset.request_reset(form.cleaned_data["name"], client_address(request))
        except TooManyAttempts as delay:
            form.add_error(None, delay.message)
            form.retry_after_s = delay.retry_after_s
        else:
            return render(request, "workspaces/mail/forgot.html", {**context, "is_requested": True})
    status = 429 if form.retry_after_s else 200
    response = render(request, "workspaces/mail/forgot.html", context, status=status)
    if form.retry_after_s:
        response.headers["Retry-After"] = str(form.retry_after_s)
    return response


def _profile(request: WorkspaceRequest, **extra: object) -> HttpResponse:
    user = request.principal.user
    oidc = settings.SIGN_IN.oidc
    accounts = list(disconnection.connected_accounts(user))
    context = {
        "provider": oidc.name if oidc.issuer else "",
        "accounts": [
            {"pk": account.pk, "label": disconnection.label(account), "created_at": account.created_at}
            for account in accounts
        ],
        "is_connected": any(account.issuer == oidc.issuer for account in accounts),
        "person": user,
        "confirmation": MailConfirmation.objects.filter(user=user).first(),
        "sends_mail": bool(settings.EMAIL_URL),
        "profile_form": ProfileForm(initial={"display_name": user.display_name}, label_suffix=""),
        "mail_form": MailForm(label_suffix=""),
        **extra,
    }
    return render(request, "workspaces/mail/profile.html", context, status=400 if extra else 200)
