"""The signing keys as the settings page shows them."""

from __future__ import annotations

from typing import Any

from registry.certificates import keys
from registry.errors import RegistryError
from workspaces.access import Principal
from workspaces.settings_sections import Section


def told(_: Principal) -> dict[str, Any]:
    try:
        return {"keys": keys.known(), "error": ""}
    except (RegistryError, OSError) as error:
        return {"keys": [], "error": f"{error}."}


SECTION = Section("registry/_keys.html", told)
