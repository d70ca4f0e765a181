"""Names of the hub's cookies, which differ from those of other programs on the same host. Imports no
Django."""

from __future__ import annotations

from urllib.parse import urlsplit


def name(plain: str, public_url: str) -> str:
    """Returns the name of the cookie `plain` of a hub that browsers reach at `public_url`.

    With TLS, browsers accept a `__Host-` cookie only from this very host, over TLS and for all paths, so no
    program at a neighbouring host name can set it. Plain HTTP has no such rule; there the port in the name
    distinguishes two hubs on one machine."""
    parts = urlsplit(public_url)
    if parts.scheme == "https":
        return f"__Host-{plain}"
    return f"trainhub_{parts.port or 80}_{plain}"
