"""The page of the second step of signing in."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from workspaces.authentication.delays import TooManyAttempts
from workspaces.authentication.factors import proof, second_step
from workspaces.authentication.factors.forms import SecondStepForm
from workspaces.authentication.factors.second_step import PendingSignIn
from workspaces.authentication.sign_in_completion import begin_session, local_address
from workspaces.http.secret_pages import never_store


@login_not_required
@sensitive_post_parameters()
def second_step_page(request: HttpRequest) -> HttpResponse:
    """Asks for the second factor, and signs in."""
    pending = second_step.pending_sign_in(request)
    if pending is None:
        messages.error(request, "Sign in once more: the first step was too long ago.")
        return redirect("sign-in")
    form = SecondStepForm(request.POST or None, label_suffix="")
    if form.is_valid() and _is_proved(request, pending, form):
        second_step.forget(request)
        begin_session(request, pending.user, pending.way, factor="second")
        return redirect(local_address(request, pending.next_address))
    factors = proof.factors_of(pending.user)
    context = {"form": form, "person": pending.user, "factors": factors, "is_alone": True, "options": ""}
    if factors.passkeys:
        context["options"], challenge = proof.passkeys_module().request_options(pending.user)
        proof.keep_challenge(request, challenge)
    status = 429 if form.retry_after_s else 200
    response = render(request, "workspaces/factors/second_step.html", context, status=status)
    if form.retry_after_s:
        response.headers["Retry-After"] = str(form.retry_after_s)
    never_store(response)
    return response


def _is_proved(request: HttpRequest, pending: PendingSignIn, form: SecondStepForm) -> bool:
    fields = form.cleaned_data
    try:
        is_right = proof.accept_proof(request, pending.user, fields["code"], fields["credential"])
    except TooManyAttempts as delay:
        form.add_error(None, delay.message)
        form.retry_after_s = delay.retry_after_s
        return False
    if not is_right:
        form.add_error(
            None,
            "This passkey was not accepted."
            if fields["credential"]
            else "This code is wrong, has expired or was used already. Wait for the next one.",
        )
    return is_right
