"""The section of the settings page that shows the signing keys."""

from __future__ import annotations

from typing import Any

from registry.certificates import keys
from registry.errors import RegistryError
from workspaces.access import Principal
from workspaces.settings_sections import Section


def context(_: Principal) -> dict[str, Any]:
    try:
        return {"keys": keys.public_keys(), "error": ""}
    except (RegistryError, OSError) as error:
        # A damaged key must not make the whole settings page fail; the section shows the error instead.
        return {"keys": [], "error": f"{error}."}


SECTION = Section("registry/_keys.html", context)
