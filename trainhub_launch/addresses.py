"""Tests which hosts an address can be reached from."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Returns whether `host`, a name or an IP address without brackets, means the local machine. Does no name
    lookup."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # Name resolution is left out on purpose: RFC 6761 reserves `localhost` and all names below it for the
        # machine itself.
        return host == "localhost" or host.endswith(".localhost")
