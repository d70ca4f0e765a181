"""Pages of operators for the people of this installation, and the page that a password link opens."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from workspaces.access import WorkspaceRequest, operators_only
from workspaces.administration import accounts, active_work, password_links
from workspaces.administration.errors import AdministrationError
from workspaces.administration.forms import ChoosePasswordForm, DeactivateForm
from workspaces.authentication.confirmation import requires_password
from workspaces.authentication.delays import HashingBusy
from workspaces.authentication.external import disconnection
from workspaces.authentication.external.disconnection import DisconnectRefused
from workspaces.authentication.factors import proof, removal
from workspaces.authentication.sessions import own_sessions
from workspaces.http.secret_pages import never_store
from workspaces.models import ApiToken, Membership, User

PAGE_SIZE = 50
MAX_SERVICES = 500
MAX_SEARCH = 150


@require_GET
@operators_only
def people(request: WorkspaceRequest) -> HttpResponse:
    """Lists the accounts of this installation, by name; `q` is a part of the name."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_SEARCH]
    memberships = Membership.objects.select_related("workspace").order_by("workspace__name")
    matching = User.objects.filter(username__icontains=text).order_by("username")
    users = matching.filter(service_workspace=None)
    # At most as many as all workspaces may have; those that were deleted are members of none.
    services = matching.exclude(memberships=None).exclude(service_workspace=None)
    page = Paginator(users.prefetch_related(Prefetch("memberships", memberships)), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    context = {
        "page": page,
        "search": text,
        "services": services.select_related("service_workspace")[:MAX_SERVICES],
    }
    return render(request, "workspaces/people.html", context)


@require_GET
@operators_only
def person(request: WorkspaceRequest, pk: int) -> HttpResponse:
    return _person(request, _user(pk))


@require_POST
@operators_only
@requires_password
def create_link(request: WorkspaceRequest, pk: int) -> HttpResponse:
    user = _user(pk)
    try:
        link, address = password_links.create_link(request.principal.user, user)
    except AdministrationError as error:
        messages.error(request, f"{error.message}.")
        return redirect("person", pk)
    return _person(request, user, link=link, link_address=address)


@require_POST
@operators_only
@requires_password
def set_operator(request: WorkspaceRequest, pk: int) -> HttpResponse:
    user, is_operator = _user(pk), request.POST.get("is_operator") == "yes"
    try:
        accounts.set_operator(request.principal.user, user, is_operator=is_operator)
    except AdministrationError as error:
        messages.error(request, f"{error.message}.")
    else:
        messages.success(request, f"{user} is {'now' if is_operator else 'no longer'} an operator.")
    if user == request.user and not is_operator:
        # This page is not theirs any more.
        return redirect("settings")
    return redirect("person", pk)


@require_POST
@operators_only
@requires_password
def deactivate(request: WorkspaceRequest, pk: int) -> HttpResponse:
    user, form = _user(pk), DeactivateForm(request.POST)
    if not form.is_valid():
        return _person(request, user, deactivate_form=form)
    if user == request.user:
        messages.error(request, "You cannot deactivate yourself; ask another operator.")
        return redirect("person", pk)
    try:
        # Together, because the page of a deactivated person does not offer to cancel runs any more.
        with transaction.atomic():
            accounts.deactivate(request.principal.user, user)
            canceled = active_work.cancel_runs_of(user, request.principal.user) if form.cancels_runs else 0
    except AdministrationError as error:
        messages.error(request, f"{error.message}.")
        return redirect("person", pk)
    ended = (
        f" {canceled} of their runs {'is' if canceled == 1 else 'are'} being canceled." if canceled else ""
    )
    messages.success(
        request, f"{user} is deactivated: signed out everywhere, and their tokens are revoked.{ended}"
    )
    return redirect("person", pk)


@require_POST
@operators_only
@requires_password
def activate(request: WorkspaceRequest, pk: int) -> HttpResponse:
    user = _user(pk)
    if accounts.activate(request.principal.user, user):
        messages.success(request, f"{user} can sign in again. Tokens that were revoked stay revoked.")
    return redirect("person", pk)


@require_POST
@operators_only
@requires_password
def reset_factors(request: WorkspaceRequest, pk: int) -> HttpResponse:
    user = _user(pk)
    if removal.reset_factors(request.principal.user, user):
        messages.success(request, f"{user} signs in without a second factor until they set one up again.")
    return redirect("person", pk)


@require_POST
@operators_only
@requires_password
def disconnect_account(request: WorkspaceRequest, pk: int, account_id: int) -> HttpResponse:
    """Ends signing in by an account of the person at a provider or a proxy, and their sessions."""
    user = _user(pk)
    account = get_object_or_404(disconnection.connected_accounts(user), pk=account_id)
    try:
        disconnection.disconnect(request.principal.user, account)
    except DisconnectRefused as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, f"{user} cannot sign in with {disconnection.label(account)} any more.")
    return redirect("person", pk)


@login_not_required
@sensitive_post_parameters()
def choose_password(request: HttpRequest, text: str) -> HttpResponse:
    """Lets the person of a link choose a password. The link signs nobody in: a person with it types the new
    password once more, and a browser that only previews addresses changes nothing."""
    link = password_links.find_link(text)
    if link is None:
        return render(request, "workspaces/password_link_gone.html", {"is_alone": True}, status=404)
    form = ChoosePasswordForm(link.user, request.POST or None)
    if form.is_valid():
        try:
            is_used = password_links.use_link(link, str(form.cleaned_data["new_password1"]))
        except HashingBusy as delay:
            form.add_error(None, delay.message)
            form.retry_after_s = delay.retry_after_s
        else:
            if not is_used:
                return render(request, "workspaces/password_link_gone.html", {"is_alone": True}, status=404)
            messages.success(request, "Your password is set. Sign in with it.")
            return redirect("sign-in")
    context = {"form": form, "person": link.user, "is_alone": True}
    response = render(
        request, "workspaces/password_link.html", context, status=429 if form.retry_after_s else 200
    )
    if form.retry_after_s:
        response.headers["Retry-After"] = str(form.retry_after_s)
    never_store(response)
    return response


def _user(pk: int) -> User:
    return get_object_or_404(User, pk=pk, service_workspace=None)


def _person(request: WorkspaceRequest, user: User, **extra: object) -> HttpResponse:
    context = {
        "person": user,
        "memberships": user.memberships.select_related("workspace").order_by("workspace__name"),
        "session_count": len(own_sessions(user)),
        "token_count": ApiToken.objects.filter(user=user, revoked_at=None).count(),
        "active_runs": active_work.active_runs_of(user),
        "is_self": user == request.user,
        "factors": proof.factors_of(user),
        "external_accounts": [
            {"pk": account.pk, "label": disconnection.label(account), "subject": account.subject}
            for account in disconnection.connected_accounts(user)
        ],
        "deactivate_form": DeactivateForm(label_suffix=""),
        **extra,
    }
    is_wrong = any(getattr(form, "is_bound", False) for form in extra.values())
    response = render(request, "workspaces/person.html", context, status=400 if is_wrong else 200)
    # It may hold a link that is shown once.
    never_store(response)
    return response
