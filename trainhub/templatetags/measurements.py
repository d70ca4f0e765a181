"""Template filters for durations of the hub's own work."""

from __future__ import annotations

import math

from django import template

register = template.Library()


@register.filter
def at_most(seconds: float | None) -> str:
    """Returns the words for an upper bound in seconds, such as `≤ 25 ms`; a dash if nothing was observed."""
    if seconds is None:
        return "–"
    return "> 60 s" if math.isinf(seconds) else f"≤ {measured_duration(seconds)}"


@register.filter
def measured_duration(seconds: float | None) -> str:
    """Returns a measured time in seconds in words: `2.5 ms`, `310 ms`, `4.2 s`, `130 s`."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.2g} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"
    return f"{seconds:.3g} s"
