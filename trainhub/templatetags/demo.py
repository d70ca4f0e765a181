"""Template tags that show something in a demo only: the banner of every page, and what there is to try."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from trainhub import installation
from trainhub.demo.files import is_demo
from trainhub.demo.steps import steps_to_try
from workspaces.states import Role

register = template.Library()
IS_DEMO = is_demo()


@register.inclusion_tag("demo/_banner.html", takes_context=True)
def demo_banner(context: Context) -> dict[str, Any]:
    principal = getattr(context.get("request"), "principal", None)
    return {
        "is_demo": IS_DEMO,
        "may_remove": principal is not None and principal.role.covers(Role.OWNER),
        "csrf_token": context.get("csrf_token"),
        "folder": installation.DATA_DIR,
    }


@register.inclusion_tag("demo/_steps.html", takes_context=True)
def demo_steps(context: Context) -> dict[str, Any]:
    steps = steps_to_try(context["request"].principal.workspace) if IS_DEMO else ()
    return {"steps": steps, "csrf_token": context.get("csrf_token")}
