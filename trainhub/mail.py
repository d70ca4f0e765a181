"""Parses EMAIL_URL, the address of the mail server."""

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
    """Returns the mail server at `url`: `smtp://`, `smtps://` (TLS from the start) or `smtp+tls://`
    (STARTTLS), then `user:password@host:port`. An empty `url` means no server. Raises EnvError for anything
    else."""
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
        # Percent-encoding is the only way to write `@`, `:` or `/` in a password within a URL.
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        is_ssl=parts.scheme == "smtps",
        is_starttls=parts.scheme == "smtp+tls",
    )
