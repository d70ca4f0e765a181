"""Notices a proxy that removes headers without which the hub works worse, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from urllib.parse import urlsplit

from django.conf import settings

from workspaces.hub_metrics.instruments import PROXY_FAULTS

log = logging.getLogger(__name__)
FORWARDED_FOR, FORWARDED_PROTO, UPGRADE = "X-Forwarded-For", "X-Forwarded-Proto", "Upgrade"
LOSSES = {
    FORWARDED_FOR: "everybody counts as one address where guessing passwords is slowed down, and the audit "
    "trail names the proxy",
    FORWARDED_PROTO: "requests count as plain HTTP",
    UPGRADE: "pages have no live updates: they show what was there when they were opened",
}
SOCKETS = b"/ws/"
# Asked by proxies themselves.
_HEALTH = b"/healthz"
_logged: set[str] = set()


def note_faults(path: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Counts what the head of a request from a trusted proxy lacks; the first time, the log says it. Programs
    on the machine of the proxy that speak to the hub directly, such as its agent, do not use its public
    address."""
    fields = dict(headers)
    public = urlsplit(settings.PUBLIC_URL)
    if fields.get(b"host", b"").decode("latin-1") != public.netloc or path.startswith(_HEALTH):
        return
    if b"x-forwarded-for" not in fields:
        _count(FORWARDED_FOR)
    if public.scheme == "https" and b"x-forwarded-proto" not in fields:
        _count(FORWARDED_PROTO)
    if path.startswith(SOCKETS) and b"upgrade" not in fields:
        _count(UPGRADE)


def _count(header: str) -> None:
    PROXY_FAULTS.labels(header).inc()
    if header not in _logged:
        _logged.add(header)
        log.warning(
            "The proxy removes the header %s, or does not set it: %s. docs/network.md has examples for nginx "
            "and Caddy that do.",
            header,
            LOSSES[header],
        )
