"""The browser of the person, if this machine has a display."""

from __future__ import annotations

import os
import sys


def has_display() -> bool:
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def open_in_browser(address: str) -> bool:
    """Opens a page of a hub. Returns whether a browser has started."""
    # Only a web page: what else an address can be, browsers hand to other programs.
    if not address.startswith(("http://", "https://")):
        return False
    import webbrowser

    return webbrowser.open(address)
