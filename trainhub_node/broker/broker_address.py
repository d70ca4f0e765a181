"""What can be said of a broker's address without the libraries that connect to it."""

from __future__ import annotations

from urllib.parse import urlsplit

from trainhub_launch.addresses import is_loopback


class InvalidBrokerLink(Exception):
    """The hub's answer names no broker that this node may connect to; the message says what is wrong."""


def local_port(url: str) -> int | None:
    """Returns the port of a broker on this machine that others cannot reach, else None."""
    parts = urlsplit(url)
    try:
        return parts.port if is_loopback(parts.hostname or "") else None
    except ValueError:
        return None  # what is no port is refused where the link is read
