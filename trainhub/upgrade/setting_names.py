"""Settings in the environment that this version does not have: removed ones, renamed ones, and slips."""

from __future__ import annotations

import os
import re

from trainhub.installation import BASE_DIR

# The document lists every setting, which a test holds.
_ROW = re.compile(r"^\| `([A-Z][A-Z0-9_]+)`", re.MULTILINE)
# First words that other programs use, too.
_COMMON = {"API", "DEBUG", "GIT", "HTTP", "MAX", "NODE", "OPEN", "PUBLIC", "SECRET", "SESSION", "TLS"}


def documented_settings() -> set[str]:
    return set(_ROW.findall((BASE_DIR / "docs" / "configuration.md").read_text()))


def unknown_settings() -> list[str]:
    """Returns the names of variables that look like settings of the hub, and are none."""
    settings = documented_settings()
    words = {name.partition("_")[0] for name in settings if "_" in name} - _COMMON
    names = (name.removesuffix("_FILE") for name in os.environ)
    return sorted(name for name in names if name.partition("_")[0] in words and name not in settings)
