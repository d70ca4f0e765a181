"""The navigation beside every page: its entries, and which of them is the current one."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

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
# Where a page's address does not begin with that of its entry.
ELSEWHERE = {
    "/nodes/": "clusters",
    "/quotas/": "clusters",
    "/audit/": "settings",
    "/people/": "settings",
    "/retention/": "settings",
    "/workspaces/": "settings",
}


@dataclass(frozen=True)
class NavigationEntry:
    name: str
    word: str
    icon: str
    url: str
    is_current: bool

    @property
    def is_seldom(self) -> bool:
        """Returns whether a phone shows the entry in the user's menu, because the bar at the bottom has no
        room for it."""
        return self.name in ("experiments", "environments", "data", "usage", "settings")


def navigation_entries(request: HttpRequest) -> list[NavigationEntry]:
    """Returns the entries whose pages this installation has.

    The one with the longest matching address is current.
    """
    entries = [(name, word, icon, url) for name, word, icon in ENTRIES if (url := _url(name))]
    current = _current(request.path, {name: url for name, _, _, url in entries})
    return [NavigationEntry(name, word, icon, url, name == current) for name, word, icon, url in entries]


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
