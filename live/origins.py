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

    The scheme is not compared: behind a TLS proxy the hub itself sees plain HTTP.
    """
    origin = header(scope, "origin")
    if not origin:
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    asked = _address(f"{origin.partition(':')[0]}://{header(scope, 'host')}")
    return asked is not None and _address(origin) == asked


def _address(url: str) -> tuple[str, int] | None:
    """Host and port; None for what is no address of a web server."""
    try:
        parts = urlsplit(url)
        return (parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]) if parts.hostname else None
    except (ValueError, KeyError):
        return None
