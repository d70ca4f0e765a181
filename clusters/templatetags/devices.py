"""Filters for devices."""

from __future__ import annotations

from django import template

from clusters.gpu_display import gpu_summary, heat

register = template.Library()
register.filter("heat", heat)
register.filter("gpu_summary", gpu_summary)


@register.filter
def with_unit(value: float | None, unit: str = "") -> str:
    """Returns a number with its unit, or a dash if it is unknown."""
    if value is None:
        return "–"
    return f"{value:.0f} {unit}".rstrip()
