"""Pages for the secrets of the workspace and of the person, under Settings."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from workspaces.access import WorkspaceRequest, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.http.secret_pages import never_store
from workspaces.models import Secret
from workspaces.secrets import store
from workspaces.secrets.errors import SecretError, SecretsUnavailable
from workspaces.secrets.forms import SecretForm
from workspaces.states import Role

MAX_USES = 100


@require_GET
@needs(Role.VIEWER)
def secrets(request: WorkspaceRequest) -> HttpResponse:
    # From another page with the name to store, such as a finding of the wizard.
    name = request.GET.get("name", "")[:64]
    return _secrets(request, initial=name if store.NAME.fullmatch(name) else "")


@sensitive_post_parameters()
@needs(Role.CONTRIBUTOR)
@require_POST
@requires_password
def secret_store(request: WorkspaceRequest) -> HttpResponse:
    form = SecretForm(request.POST, principal=request.principal)
    if not form.is_valid():
        return _secrets(request, form)
    fields = form.cleaned_data
    try:
        secret = store.put(request.principal, fields["name"], fields["value"], fields["scope"])
    except SecretError as error:
        form.add_error(error.field, f"{error.message[:1].upper()}{error.message[1:]}.")
    except SecretsUnavailable as error:
        form.add_error(None, f"The value was not stored: {error.message}.")
    else:
        messages.success(request, _stored(secret))
        return redirect("secrets")
    return _secrets(request, form)


@require_GET
@needs(Role.VIEWER)
def secret(request: WorkspaceRequest, pk: int) -> HttpResponse:
    row = _secret(request, pk)
    uses = list(row.uses.all()[: MAX_USES + 1])
    context = {
        "row": _row(request, row),
        "uses": uses[:MAX_USES],
        "has_more": len(uses) > MAX_USES,
        "principal": request.principal,
    }
    return render(request, "workspaces/secret.html", context)


@needs(Role.CONTRIBUTOR)
@require_POST
@requires_password
def secret_delete(request: WorkspaceRequest, pk: int) -> HttpResponse:
    row = _secret(request, pk)
    try:
        store.delete(request.principal, row)
    except store.NotAllowed as error:
        raise PermissionDenied(str(error)) from error
    messages.success(request, f"The secret {row.name} is deleted.")
    return redirect("secrets")


def _secrets(request: WorkspaceRequest, form: SecretForm | None = None, initial: str = "") -> HttpResponse:
    rows = [_row(request, row) for row in store.visible(request.principal)]
    blank = SecretForm(None, principal=request.principal)
    blank.initial = {"name": initial}
    context = {
        "rows": rows,
        "form": form or blank,
        "may_add": request.principal.may(Role.CONTRIBUTOR),
        "principal": request.principal,
    }
    response = render(request, "workspaces/secrets.html", context, status=400 if form else 200)
    never_store(response)
    return response


def _row(request: WorkspaceRequest, secret: Secret) -> dict[str, Any]:
    scope = store.scope_of(secret)
    return {
        "secret": secret,
        "scope": scope,
        "may_change": request.principal.may(store.NEEDED[scope]),
        "last_used_at": secret.last_used_at,  # type: ignore[attr-defined]
    }


def _secret(request: WorkspaceRequest, pk: int) -> Secret:
    secret = store.visible(request.principal).filter(pk=pk).first()
    if secret is None:
        raise Http404
    return secret


def _stored(secret: Secret) -> str:
    text = f"The secret {secret.name} is stored."
    if secret.is_masked:
        return text
    return f"{text} Its value is too short or too much like a word to mask it in logs: do not print it."
