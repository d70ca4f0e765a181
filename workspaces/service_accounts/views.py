"""Pages on which owners manage the service accounts of their workspace."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from workspaces.access import WorkspaceRequest, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.http.secret_pages import never_store
from workspaces.models import User
from workspaces.service_accounts import account_tokens, accounts
from workspaces.service_accounts.errors import ServiceAccountError
from workspaces.service_accounts.forms import ServiceAccountForm, ServiceRoleForm, ServiceTokenForm
from workspaces.states import Role


@require_GET
@needs(Role.OWNER)
def service_accounts(request: WorkspaceRequest) -> HttpResponse:
    return _list(request, ServiceAccountForm(label_suffix=""))


@needs(Role.OWNER)
@require_POST
@requires_password
def service_account_create(request: WorkspaceRequest) -> HttpResponse:
    form = ServiceAccountForm(request.POST, label_suffix="")
    who = request.principal
    if form.is_valid():
        fields = form.cleaned_data
        try:
            account = accounts.create(who.user, who.workspace, fields["name"], fields["role"])
        except ServiceAccountError as error:
            form.add_error(error.field if error.field in form.fields else None, _sentence(error))
        else:
            messages.success(
                request, f"{account} is {fields['role']} of {who.workspace}. Make a token for it."
            )
            return redirect("service-account", account.pk)
    return _list(request, form)


@require_GET
@needs(Role.OWNER)
def service_account(request: WorkspaceRequest, pk: int) -> HttpResponse:
    return _page(request, _account(request, pk))


@needs(Role.OWNER)
@require_POST
@requires_password
def service_account_role(request: WorkspaceRequest, pk: int) -> HttpResponse:
    account, form = _account(request, pk), ServiceRoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose viewer or contributor.")
    else:
        accounts.change_role(request.principal.user, account, form.cleaned_data["role"])
        messages.success(request, f"{account} is now {form.cleaned_data['role']}.")
    return redirect("service-account", pk)


@needs(Role.OWNER)
@require_POST
@requires_password
def service_account_state(request: WorkspaceRequest, pk: int) -> HttpResponse:
    """Disables or enables the account: `is_active` is yes or no."""
    account, is_active = _account(request, pk), request.POST.get("is_active") == "yes"
    accounts.set_active(request.principal.user, account, is_active=is_active)
    state = "enabled: its tokens work again" if is_active else "disabled: its tokens are refused"
    messages.success(request, f"{account} is {state}.")
    return redirect("service-account", pk)


@needs(Role.OWNER)
@require_POST
@requires_password
def service_account_delete(request: WorkspaceRequest, pk: int) -> HttpResponse:
    account = _account(request, pk)
    accounts.delete(request.principal.user, account)
    messages.success(request, f"{account} is deleted, and its tokens are revoked. Its runs stay.")
    return redirect("service-accounts")


@needs(Role.OWNER)
@require_POST
@requires_password
def service_token_create(request: WorkspaceRequest, pk: int) -> HttpResponse:
    account, form = _account(request, pk), ServiceTokenForm(request.POST)
    if form.is_valid():
        fields = form.cleaned_data
        try:
            _, text = account_tokens.create_token(
                request.principal.user, account, fields["name"], fields["scope"], form.lifetime
            )
        except ServiceAccountError as error:
            form.add_error(None, _sentence(error))
        else:
            return _page(request, account, new_token=text)
    return _page(request, account, token_form=form)


@needs(Role.OWNER)
@require_POST
@requires_password
def service_token_revoke(request: WorkspaceRequest, pk: int, token_id: int) -> HttpResponse:
    account = _account(request, pk)
    token = get_object_or_404(accounts.tokens_of(account).select_related("user", "workspace"), pk=token_id)
    account_tokens.revoke_token(request.principal.user, token)
    messages.success(request, f"Token {token.name} of {account} is revoked.")
    return redirect("service-account", pk)


def _account(request: WorkspaceRequest, pk: int) -> User:
    return get_object_or_404(accounts.listed(request.principal.workspace), pk=pk)


def _sentence(error: ServiceAccountError) -> str:
    return f"{error.message[:1].upper()}{error.message[1:]}."


def _list(request: WorkspaceRequest, form: ServiceAccountForm) -> HttpResponse:
    context = {
        "accounts": accounts.listed(request.principal.workspace),
        "form": form,
        "principal": request.principal,
    }
    status = 400 if form.is_bound else 200
    return render(request, "workspaces/service_accounts/service_accounts.html", context, status=status)


def _page(request: WorkspaceRequest, account: User, **extra: object) -> HttpResponse:
    context = {
        "account": account,
        "tokens": accounts.tokens_of(account),
        "roles": accounts.ROLES,
        "token_form": ServiceTokenForm(),
        "now": timezone.now(),
        "principal": request.principal,
        **extra,
    }
    status = 400 if "token_form" in extra else 200
    response = render(request, "workspaces/service_accounts/service_account.html", context, status=status)
    # It may hold a token that is shown once.
    never_store(response)
    return response
