"""What is wrong between the servers of a hub that has several."""

from __future__ import annotations

from django.core.checks import CheckMessage, Warning
from django.db import DatabaseError

from workspaces.servers.differences import server_warnings


def unequal_servers() -> list[CheckMessage]:
    """Settings in which living servers differ, and clocks that are wrong."""
    try:
        warnings = server_warnings()
    except DatabaseError:
        return []  # before the first migration there is no table
    return [Warning(warning.text, hint=warning.remedy, id="trainhub.W017") for warning in warnings]
