from __future__ import annotations

import time

from django import template

from clusters.ranges import PRESETS

register = template.Library()


@register.simple_tag
def range_presets() -> tuple[tuple[str, str], ...]:
    return PRESETS


@register.simple_tag
def hub_now() -> str:
    """Returns the hub's time in Unix seconds with milliseconds, because the clock of a browser may be
    wrong."""
    return f"{time.time():.3f}"
