"""Names of the hub's cookies, which keep those of other programs on the same host from being taken for them.
No Django here."""

from __future__ import annotations

from urllib.parse import urlsplit


def name(plain: str, public_url: str) -> str:
    """The name of the cookie `plain` of a hub that browsers reach at `public_url`.

    Under TLS browsers take a `__Host-` cookie only from this very host, by TLS, for all of its paths: no
    program at a neighbouring host name can set it. Plain HTTP knows no such rule; there the port keeps two
    hubs on one machine apart."""
    parts = urlsplit(public_url)
    if parts.scheme == "https":
        return f"__Host-{plain}"
    return f"trainhub_{parts.port or 80}_{plain}"
