"""The rail of every page."""

from __future__ import annotations

from dataclasses import dataclass

from django import template
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

register = template.Library()

ENTRIES = (
    ("dashboard", "Dashboard", "squares-2x2"),
    ("wizard-start", "New run", "plus-circle"),
    ("runs", "Runs", "queue-list"),
    ("experiments", "Experiments", "beaker"),
    ("clusters", "Clusters", "server-stack"),
    ("alerts", "Alerts", "bell-alert"),
    ("models", "Models", "cube"),
    ("environments", "Environments", "archive-box"),
    ("data", "Data", "circle-stack"),
    ("usage", "Usage", "chart-bar"),
    ("settings", "Settings", "cog-6-tooth"),
)
ELSEWHERE = {"/nodes/": "clusters"}
"""Where a page's address does not begin with that of its entry."""


@dataclass(frozen=True)
class RailEntry:
    name: str
    word: str
    icon: str
    url: str
    is_current: bool

    @property
    def is_seldom(self) -> bool:
        """A phone's bottom bar has no room for it: there it stands in the person's menu."""
        return self.name in ("experiments", "environments", "data", "usage", "settings")


@register.simple_tag
def rail(request: HttpRequest) -> list[RailEntry]:
    """The entries whose pages this installation has; the one with the longest matching address is current."""
    entries = [(name, word, icon, url) for name, word, icon in ENTRIES if (url := _url(name))]
    current = _current(request.path, {name: url for name, _, _, url in entries})
    return [RailEntry(name, word, icon, url, name == current) for name, word, icon, url in entries]


def _url(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


def _current(path: str, urls: dict[str, str]) -> str:
    for prefix, name in ELSEWHERE.items():
        if path.startswith(prefix):
            return name
    fitting = [name for name, url in urls.items() if path == url or (url != "/" and path.startswith(url))]
    return max(fitting, key=lambda name: len(urls[name]), default="")
