"""The pages of retention rules: a form, the preview of what it would remove, and its confirmation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from jobs.retention_rules import rule_changes
from jobs.retention_rules.forms import HubRuleForm, OwnRuleForm, add_problem
from jobs.retention_rules.previews import RulesPreview, preview_for_all, preview_own
from jobs.retention_rules.protections import KEEP_TAG
from jobs.retention_rules.rule_states import rule_states
from jobs.retention_rules.rules import hub_rules
from trainhub_launch.errors import SpecError
from workspaces.access import Principal, WorkspaceRequest, lacking, must_operate, needs
from workspaces.settings_sections import Section
from workspaces.states import Role

Forms = Sequence[OwnRuleForm] | Sequence[HubRuleForm]


@needs(Role.VIEWER)
def retention(request: WorkspaceRequest) -> HttpResponse:
    """The rules of the workspace: members see them, owners preview and set them."""
    who = request.principal
    if request.method == "POST" and not who.may(Role.OWNER):
        raise PermissionDenied(lacking(who, Role.OWNER))
    states = rule_states(who.workspace)
    data = request.POST if request.method == "POST" else None
    rule_forms = [OwnRuleForm(state, data) for state in states]
    return _answer(
        request,
        rule_forms,
        lambda choices: preview_own(who.workspace, choices),
        lambda choices, confirmation: rule_changes.set_own(who.workspace, choices, who.user, confirmation),
        {
            "states": states,
            "waiting": [state for state in states if state.waiting],
            "may_change": who.may(Role.OWNER),
            "for_all": False,
        },
    )


@needs(Role.VIEWER)
def hub_retention(request: WorkspaceRequest) -> HttpResponse:
    """The rules for all workspaces, for operators."""
    must_operate(request.user)
    data = request.POST if request.method == "POST" else None
    rule_forms = [HubRuleForm(kind, hub, data) for kind, hub in hub_rules().items()]
    return _answer(
        request,
        rule_forms,
        preview_for_all,
        lambda choices, confirmation: rule_changes.set_for_all(choices, request.user, confirmation),
        {"may_change": True, "for_all": True},
    )


@require_POST
@needs(Role.OWNER)
def cancel(request: WorkspaceRequest) -> HttpResponse:
    """Cancels the stricter rules that wait."""
    try:
        rule_changes.cancel_waiting(request.principal.workspace, request.user)
    except SpecError as error:
        messages.error(request, f"{error.field}: {error.message}.")
    else:
        messages.success(request, "The stricter rules are canceled. Nothing was removed by them.")
    return redirect("retention")


def _answer(
    request: WorkspaceRequest,
    rule_forms: Forms,
    preview: Callable[[Any], RulesPreview],
    store: Callable[[Any, str], None],
    context: Mapping[str, object],
) -> HttpResponse:
    """Shows the form; previews what was typed; stores what was previewed and confirmed."""
    preview_now: RulesPreview | None = None
    problem = ""
    if request.method == "POST" and all(form.is_valid() for form in rule_forms):
        choices = {form.kind: form.choice for form in rule_forms}
        try:
            if confirmation := request.POST.get("confirmation", ""):
                store(choices, confirmation)
                messages.success(request, "The rules are saved.")
                return redirect(request.path)
            preview_now = preview(choices)
        except SpecError as error:
            problem = add_problem(rule_forms, error)
    is_refused = bool(problem) or any(form.errors for form in rule_forms)
    page = {"forms": rule_forms, "preview": preview_now, "problem": problem, "keep_tag": KEEP_TAG, **context}
    return render(request, "jobs/retention/retention.html", page, status=400 if is_refused else 200)


def _section(who: Principal) -> dict[str, object]:
    states = rule_states(who.workspace)
    return {
        "removing": [state for state in states if state.in_force.days is not None],
        "waiting": [state for state in states if state.waiting],
        "is_operator": who.user.is_operator,
    }


SECTION = Section("jobs/retention/_section.html", _section)
