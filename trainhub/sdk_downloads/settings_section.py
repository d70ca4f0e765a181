"""The section of the settings page that shows how to install the command line."""

from __future__ import annotations

from typing import Any

from trainhub.sdk_downloads.install_lines import authority_pem, has_plain_http, install_lines
from trainhub.sdk_downloads.wheels import missing_requirements
from workspaces.access import Principal
from workspaces.settings_sections import Section


def install_context() -> dict[str, Any]:
    """Returns what the lines and the notes above them need, on the settings page and on /sdk/."""
    return {
        "lines": install_lines(),
        "missing": missing_requirements(),
        "has_own_authority": bool(authority_pem()),
        "has_plain_http": has_plain_http(),
    }


def context_of_person(_: Principal) -> dict[str, Any]:
    return install_context()


SECTION = Section("sdk_downloads/_settings.html", context_of_person)
