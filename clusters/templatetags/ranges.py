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
    """Unix seconds: a browser's own clock may be off."""
    return f"{time.time():.3f}"
