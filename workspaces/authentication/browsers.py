"""Names the browser that sent a request, for people who look through their sessions."""

from __future__ import annotations

# Marks of the header User-Agent, in this order: Edge and Opera also say Chrome, and all of these Safari.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
# Android also says Linux, and iOS also Mac OS X.
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
MAX_LENGTH = 100


def browser_name(user_agent: str) -> str:
    """Returns "Firefox on Linux", the beginning of a header that names no known browser, or "" for none."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    if not browser:
        return user_agent.replace("\x00", "")[:MAX_LENGTH]
    return f"{browser} on {system}" if system else browser
