"""What templates ask of a run or a member."""

from __future__ import annotations

import signal
from datetime import timedelta

from django import template
from django.conf import settings

from jobs.models import Member, Run
from jobs.states import FINAL
from trainhub_launch.frameworks import stored_summary

register = template.Library()


@register.filter
def is_active(run: Run) -> bool:
    return run.state not in FINAL


@register.simple_tag
def purge_days() -> str:
    """For how many days deleted runs are kept."""
    return f"{settings.PURGE_DAYS:g}"


@register.filter
def took(run: Run) -> timedelta | None:
    """From the first rank's start to the end."""
    return run.finished_at - run.started_at if run.finished_at and run.started_at else None


@register.filter
def framework(run: Run) -> str:
    """How it is distributed, in a word and its counts."""
    if run.kind == "external":
        return "From elsewhere"
    return stored_summary(run.spec)


@register.filter
def exit_word(member: Member) -> str:
    """`0`, `3`, or the signal's name."""
    if member.signal:
        return (
            signal.Signals(member.signal).name
            if member.signal in set(signal.Signals)
            else f"signal {member.signal}"
        )
    return "" if member.exit_code is None else str(member.exit_code)


@register.filter
def lived(member: Member) -> timedelta | None:
    return member.ended_at - member.started_at if member.ended_at and member.started_at else None
