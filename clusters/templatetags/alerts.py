"""Template tags for firing alerts, as the workspace of the request may know them."""

from __future__ import annotations

from django import template
from django.template import Context

from clusters.alerts import alert_handling, presenters
from clusters.models import Node
from workspaces.models import Workspace

register = template.Library()
MAX_ALERTS = 8


@register.simple_tag(takes_context=True)
def alerts_of_node(context: Context, node: Node) -> list[presenters.AlertSummary]:
    workspace = _workspace(context)
    return presenters.firing_on([node], workspace) if workspace else []


@register.simple_tag(takes_context=True)
def alerts_of_gpu(context: Context, node: Node, uuid: str) -> list[presenters.AlertSummary]:
    return [line for line in alerts_of_node(context, node) if line.gpu and line.gpu.uuid == uuid]


@register.simple_tag(takes_context=True)
def alerts_of_run(context: Context, run: str) -> list[presenters.AlertSummary]:
    """Returns the firing alerts about the run and about GPUs that it held when they fired."""
    workspace = _workspace(context)
    return presenters.firing_of_run(run, workspace) if workspace else []


@register.simple_tag(takes_context=True)
def alert_count_of_run(context: Context, run: str) -> int:
    """Returns how many alerts about the run, and about GPUs that it held, have fired so far."""
    workspace = _workspace(context)
    return presenters.visible(workspace, run).count() if workspace else 0


@register.simple_tag(takes_context=True)
def firing_alerts(context: Context, most: int = MAX_ALERTS) -> list[presenters.AlertSummary]:
    """Returns the most severe firing alerts, up to `most`."""
    workspace = _workspace(context)
    return presenters.all_firing(workspace, most) if workspace else []


@register.simple_tag(takes_context=True)
def firing_count(context: Context) -> int:
    workspace = _workspace(context)
    return presenters.firing_count(workspace) if workspace else 0


@register.simple_tag(takes_context=True)
def may_handle(context: Context, line: presenters.AlertSummary) -> bool:
    principal = getattr(context.get("request"), "principal", None)
    return principal is not None and line.is_open and alert_handling.may_handle(line.alert, principal)


@register.simple_tag
def snoozes() -> list[tuple[str, str]]:
    """Returns the lengths for which an alert can be snoozed, with their words."""
    return [(value, words) for value, (words, _) in alert_handling.SNOOZES.items()]


def _workspace(context: Context) -> Workspace | None:
    """Returns the workspace, or None if nobody is signed in or the page is open with a one-time password."""
    principal = getattr(context.get("request"), "principal", None)
    return principal.workspace if principal is not None else None
