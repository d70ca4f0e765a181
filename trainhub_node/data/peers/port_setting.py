"""The setting that says on which port a node gives data to others."""

from __future__ import annotations

from collections.abc import Mapping

NAME, OFF = "TRAINHUB_NODE_PEER_PORT", "off"


def peer_port(env: Mapping[str, str]) -> int | None:
    """Returns the port: 0 = any free one, None = the node gives nothing to others and takes nothing from
    them. Raises ValueError."""
    value = env.get(NAME, "")
    if value == OFF:
        return None
    if value and not (value.isdecimal() and 0 < int(value) < 65536):
        raise ValueError(f"{NAME}={value} must be the number of a port, or {OFF}")
    return int(value or 0)
