"""The mail server that EMAIL_URL names."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from trainhub.env import EnvError

PORTS = {"smtp": 25, "smtps": 465, "smtp+tls": 587}


class MailServer(NamedTuple):
    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    is_ssl: bool = False
    is_starttls: bool = False


def server(url: str) -> MailServer:
    """`smtp://`, `smtps://` (TLS from the start) or `smtp+tls://` (STARTTLS), `user:password@host:port`; ""
    is no server."""
    if not url:
        return MailServer()
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = 0
    # The address holds a password, so the error does not show it.
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise EnvError("EMAIL_URL must be smtp://, smtps:// or smtp+tls:// and then user:password@host:port")
    return MailServer(
        parts.hostname,
        port or PORTS[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        is_ssl=parts.scheme == "smtps",
        is_starttls=parts.scheme == "smtp+tls",
    )
