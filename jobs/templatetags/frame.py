"""Template tags for what every page has: its navigation and its icon."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from urllib.parse import quote

from django import template
from django.contrib.staticfiles import finders

from jobs.display.navigation import navigation_entries

register = template.Library()
register.simple_tag(navigation_entries, name="rail")


@register.simple_tag
@cache
def icon_address() -> str:
    """Returns the icon as a data: address, which saves each first visit a request."""
    return "data:image/svg+xml," + quote(Path(str(finders.find("icon.svg"))).read_text().strip())
