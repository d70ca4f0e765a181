"""Template tags for firing alerts, as the workspace of the request may know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

from clusters.alerts import presenters
from clusters.models import Node
from workspaces.models import Workspace

register = template.Library()
MAX_ALERTS = 8


@register.simple_tag(takes_context=True)
def alerts_of_node(context: Mapping[str, Any], node: Node) -> list[presenters.AlertSummary]:
    workspace = _workspace(context)
    return presenters.firing_on([node], workspace) if workspace else []


@register.simple_tag(takes_context=True)
def alerts_of_gpu(context: Mapping[str, Any], node: Node, uuid: str) -> list[presenters.AlertSummary]:
    workspace = _workspace(context)
    return (
        [line for line in presenters.firing_on([node], workspace) if line.gpu and line.gpu.uuid == uuid]
        if workspace
        else []
    )


@register.simple_tag(takes_context=True)
def alerts_of_run(context: Mapping[str, Any], run: str) -> list[presenters.AlertSummary]:
    """Returns the alerts that fire on GPUs that the run holds or held at that time."""
    workspace = _workspace(context)
    return presenters.firing_of_run(run, workspace) if workspace else []


@register.simple_tag(takes_context=True)
def firing_alerts(context: Mapping[str, Any], most: int = MAX_ALERTS) -> list[presenters.AlertSummary]:
    """Returns the most severe alerts."""
    workspace = _workspace(context)
    return presenters.all_firing(workspace, most) if workspace else []


@register.simple_tag(takes_context=True)
def firing_count(context: Mapping[str, Any]) -> int:
    workspace = _workspace(context)
    return presenters.firing_count(workspace) if workspace else 0


def _workspace(context: Mapping[str, Any]) -> Workspace | None:
    """Returns the workspace, or None if nobody is signed in or the page is open with a one-time password."""
    principal = getattr(context.get("request"), "principal", None)
    return principal.workspace if principal is not None else None
