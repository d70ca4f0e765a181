"""The page on which owners see every API token of their workspace, and end one."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import F, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from workspaces import audit, tokens
from workspaces.access import WorkspaceRequest, needs
from workspaces.authentication.confirmation import requires_password
from workspaces.models import ApiToken
from workspaces.states import Role

MAX_ROWS = 500


@require_GET
@needs(Role.OWNER)
def workspace_tokens(request: WorkspaceRequest) -> HttpResponse:
    # The one used last comes first; those that were never used come last.
    workspace = request.principal.workspace
    # Those that act in all workspaces of a member act here, too.
    here = Q(workspace=workspace) | Q(workspace=None, user__memberships__workspace=workspace)
    rows = ApiToken.objects.filter(here, revoked_at=None).select_related("user")
    ordered = list(rows.order_by(F("last_used_at").desc(nulls_last=True), "-created_at")[: MAX_ROWS + 1])
    context = {
        "rows": ordered[:MAX_ROWS],
        "has_more": len(ordered) > MAX_ROWS,
        "now": timezone.now(),
        "principal": request.principal,
    }
    return render(request, "workspaces/workspace_tokens.html", context)


@needs(Role.OWNER)
@require_POST
@requires_password
def workspace_token_revoke(request: WorkspaceRequest, pk: int) -> HttpResponse:
    who = request.principal
    token = get_object_or_404(
        ApiToken.objects.select_related("user"), pk=pk, workspace=who.workspace, revoked_at=None
    )
    tokens.revoke(token)
    audit.record(who.user, "token.revoked", token.name, who.workspace, user=token.user.get_username())
    messages.success(request, f"Token {token.name} of {token.user} is revoked.")
    return redirect("workspace-tokens")
