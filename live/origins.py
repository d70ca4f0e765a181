"""Does a browser's request come from our own page?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def header(scope: Mapping[str, Any], name: str) -> str:
    """A header of an ASGI scope by lower-case name; "" when absent."""
    wanted = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), "")


def same_origin(scope: Mapping[str, Any]) -> bool:
    """The Origin is the host that was asked, or one of CSRF_TRUSTED_ORIGINS. Without an Origin: no.

    The hub itself sees plain HTTP behind a proxy that speaks TLS, so the scheme of the request says nothing.
    But where PUBLIC_URL says that people reach this host by TLS, a page at the same host without TLS is
    another's."""
    origin = header(scope, "origin")
    if not origin:
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    scheme, host = origin.partition(":")[0], header(scope, "host")
    public = urlsplit(settings.PUBLIC_URL)
    if public.scheme == "https" and scheme != "https" and host == public.netloc:
        return False
    asked = _address(f"{scheme}://{host}")
    return asked is not None and _address(origin) == asked


def _address(url: str) -> tuple[str, int] | None:
    """Host and port; None for what is no address of a web server, with nothing before or behind these."""
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.path or parts.query or parts.fragment:
            return None
        return (parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]) if parts.hostname else None
    except (ValueError, KeyError):
        return None
