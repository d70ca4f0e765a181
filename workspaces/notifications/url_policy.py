"""Restricts the addresses of webhooks: http and https, to a host that the installation permits, at an IP
address that is resolved only once."""

from __future__ import annotations

import asyncio
import socket
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from workspaces.notifications.addresses import may_reach
from workspaces.notifications.errors import NotSent

PORTS = {"http": 80, "https": 443}
LONGEST = 1000


class UrlError(ValueError):
    """A URL cannot be used for a webhook; the message is for the person who typed it."""


class Way(NamedTuple):
    """How to reach a webhook. `url` contains the IP address to connect to; `host` is the name that the
    certificate must have, `host_header` the Host header."""

    url: str
    host: str
    host_header: str


def check_url(url: str) -> SplitResult:
    """Returns the parts of the URL. Raises UrlError if it cannot be used for a webhook."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UrlError("is not an address") from error
    if (
        parts.scheme not in PORTS
        or not parts.hostname
        or port == 0
        or len(url) > LONGEST
        or not url.isprintable()
        or " " in url
    ):
        raise UrlError("must be an http:// or https:// address")
    if parts.username is not None or parts.password is not None:
        raise UrlError("must not hold a user and a password; use a token in the path, or the signing secret")
    if settings.WEBHOOK_HOSTS and parts.hostname not in settings.WEBHOOK_HOSTS:
        raise UrlError(
            f"{parts.hostname} is not one of the hosts that this installation sends to; ask an operator "
            "(WEBHOOK_HOSTS)"
        )
    return parts


async def way(url: str) -> Way:
    """Returns how to reach `url`. The connection goes to the very IP address that was checked, so that the
    name cannot resolve to another one afterwards. Raises NotSent."""
    try:
        parts = check_url(url)
    except UrlError as error:
        raise NotSent(f"The address {error}.", is_away=True) from error
    host = parts.hostname or ""
    port = parts.port or PORTS[parts.scheme]
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotSent(f"The name {host} is not known.", is_away=True) from error
    address = next((str(item[4][0]) for item in addresses if may_reach(str(item[4][0]), host, port)), None)
    if address is None:
        remedy = "for a program on the hub's own machine, an operator can name its host in WEBHOOK_HOSTS"
        raise NotSent(f"{host} is at an address that the hub may not reach; {remedy}.", is_away=True)
    literal = f"[{address}]" if ":" in address else address
    netloc = literal if parts.port is None else f"{literal}:{parts.port}"
    return Way(parts._replace(netloc=netloc, fragment="").geturl(), host, parts.netloc)
