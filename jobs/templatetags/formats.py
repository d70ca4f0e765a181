"""Numbers, times and states as the pages write them; static/js/formats.js says the same in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django import template
from django.utils import timezone

register = template.Library()


@dataclass(frozen=True)
class Look:
    """How a state shows: `tone` names its colour, `icon` a heroicon, `word` what is read."""

    tone: str
    icon: str
    word: str


LOOKS: dict[str, Look] = {
    "Queued": Look("waiting", "clock", "Queued"),
    "Provisioning": Look("waiting", "server-stack", "Provisioning"),
    "Preparing": Look("preparing", "wrench", "Preparing"),
    "Running": Look("running", "play", "Running"),
    "Finalizing": Look("finalizing", "arrow-up-tray", "Finalizing"),
    "CancelRequested": Look("canceled", "stop-circle", "Canceling"),
    "Completed": Look("completed", "check-circle", "Completed"),
    "Failed": Look("failed", "x-circle", "Failed"),
    "Canceled": Look("canceled", "no-symbol", "Canceled"),
    "Waiting": Look("waiting", "clock", "Waiting"),
    "Succeeded": Look("completed", "check-circle", "Succeeded"),
    "Stopped": Look("canceled", "stop-circle", "Stopped"),
    "Lost": Look("failed", "signal-slash", "Lost"),
    "ready": Look("completed", "check-circle", "Ready"),
    "unreachable": Look("preparing", "exclamation-triangle", "Unreachable"),
    "lost": Look("failed", "signal-slash", "Lost"),
    "new": Look("waiting", "clock", "Never reported"),
    "revoked": Look("canceled", "no-symbol", "Revoked"),
    "error": Look("failed", "exclamation-circle", "Error"),
    "warning": Look("preparing", "exclamation-triangle", "Warning"),
    "critical": Look("failed", "fire", "Critical"),
    "hint": Look("waiting", "light-bulb", "Hint"),
}


@register.filter
def look(state: str) -> Look:
    return LOOKS.get(str(state)) or Look("waiting", "question-mark-circle", str(state))


@register.filter
def attribute(value: object, name: str) -> object:
    """`{{ state|look|attribute:'tone' }}`, where a filter's result is wanted inside an attribute."""
    return getattr(value, name)


@register.filter
def bytesize(count: float | None) -> str:
    if count is None:
        return ""
    if count < 1024:
        return f"{int(count)} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.{1 if count < 10 else 0}f} {unit}"
    return f"{count / 1024:.1f} TiB"


@register.filter
def duration(span: timedelta | float | None) -> str:
    """Two units at most: `42 s`, `3 min 4 s`, `5 h 2 min`, `3 d 4 h`; parts of a second while that is all
    there is."""
    if span is None:
        return ""
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if 0 < seconds < 1:
        return f"{seconds:.1f} s" if seconds >= 0.1 else "<0.1 s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min {whole % 60} s"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


@register.filter
def ago(at: datetime | None) -> str:
    if at is None:
        return ""
    seconds = (timezone.now() - at).total_seconds()
    if seconds < 5:
        return "just now"
    if seconds < 60:
        return f"{int(seconds)} s ago"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    return f"{int(seconds // 3600)} h ago" if seconds < 48 * 3600 else f"{int(seconds // 86400)} d ago"


@register.filter
def attempts(latest: int) -> range:
    return range(1, latest + 1)


@register.filter
def short(text: str) -> str:
    return str(text)[:8]
