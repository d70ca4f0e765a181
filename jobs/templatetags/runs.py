"""Template filters and tags for runs and their members."""

from __future__ import annotations

from datetime import timedelta

from django import template
from django.conf import settings

from environments import succession
from jobs.display.text import exit_text, framework_text
from jobs.lineage.dataset_uses import list_inexact_inputs
from jobs.models import Member, Run
from jobs.states import FINAL

register = template.Library()
register.filter("framework", framework_text)
register.filter("exit_text", exit_text)
register.filter("list_inexact_inputs", list_inexact_inputs)


@register.filter
def is_active(run: Run) -> bool:
    return run.state not in FINAL


@register.simple_tag
def purge_days() -> str:
    """Returns for how many days deleted runs are stored before they are purged."""
    return f"{settings.PURGE_DAYS:g}"


@register.filter
def took(run: Run) -> timedelta | None:
    """Returns the time from the start of the first rank to the run's end, or None."""
    return run.finished_at - run.started_at if run.finished_at and run.started_at else None


@register.filter
def environment_notice(run: Run) -> str:
    """Returns that the run's environment is deprecated or outdated, or has a successor, with what to do; ""
    otherwise."""
    ref = run.spec.get("environment", {})
    return succession.environment_notice(run.workspace, ref.get("name", ""), ref.get("version", ""))


@register.filter
def lived(member: Member) -> timedelta | None:
    return member.ended_at - member.started_at if member.ended_at and member.started_at else None
