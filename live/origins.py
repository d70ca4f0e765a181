"""Checks whether a browser's request comes from a page of this hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from starlette.datastructures import Headers

DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def header(scope: Mapping[str, Any], name: str) -> str:
    """Returns a header of an ASGI scope; "" if it is absent."""
    return Headers(raw=scope["headers"]).get(name, "")


def same_origin(scope: Mapping[str, Any]) -> bool:
    """Returns whether the Origin header names the requested host, or one of CSRF_TRUSTED_ORIGINS. Returns
    False without an Origin."""
    origin = header(scope, "origin")
    if not origin:
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    scheme, host = origin.partition(":")[0], header(scope, "host")
    public = urlsplit(settings.PUBLIC_URL)
    # Behind a proxy that speaks TLS the hub sees plain HTTP, so the scheme of the request says nothing. But
    # where PUBLIC_URL says that people reach this host by TLS, a page of the same host without TLS may come
    # from somebody on the network between.
    if public.scheme == "https" and scheme != "https" and host == public.netloc:
        return False
    address = _address(f"{scheme}://{host}")
    return address is not None and _address(origin) == address


def _address(url: str) -> tuple[str, int] | None:
    """Returns host and port of a URL, or None unless it consists of scheme, host and port only."""
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.path or parts.query or parts.fragment:
            return None
        return (parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]) if parts.hostname else None
    except (ValueError, KeyError):
        return None
