"""Requests of an attempt's child to the hub, with the tickets of its order."""

from __future__ import annotations

import ssl
from urllib import request
from urllib.parse import urlsplit

from trainhub_launch.addresses import is_loopback
from trainhub_node.supervisor.gang import Gang

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


def hub_opener(gang: Gang, url: str) -> request.OpenerDirector:
    """Returns what opens addresses of the hub: through the node's proxies, and with the hub's authority."""
    context = ssl.create_default_context(cafile=gang.terms["ca"] or None)
    proxies = request.ProxyHandler(hub_proxies(gang, url))
    return request.build_opener(proxies, request.HTTPSHandler(context=context))


def hub_proxies(gang: Gang, url: str) -> dict[str, str]:
    """Returns the proxies by which this node reaches the hub, by the scheme of addresses."""
    variables = _variables_for(gang.terms["pip"], url)
    by_scheme = {name.lower().removesuffix("_proxy"): value for name, value in variables.items()}
    return {name: by_scheme[name] for name in ("http", "https") if name in by_scheme}


def hub_variables(terms: Mapping[str, Any], url: str, certificates: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables with which another program connects to the hub as `hub_opener` does. `terms`:
    of an attempt; `certificates`: those with which it trusts the authorities of this machine."""
    authority = terms["ca"]
    return _variables_for(terms["pip"], url) | (
        {"SSL_CERT_FILE": authority} if authority else dict(certificates)
    )


def _variables_for(settings: Mapping[str, str], url: str) -> dict[str, str]:
    return {} if is_loopback(urlsplit(url).hostname or "") else proxy_variables(settings)


def proxy_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables among these that name proxies."""
    return {name: value for name, value in settings.items() if name.upper() in PROXIES}


def is_refusal(error: OSError) -> bool:
    """Returns whether the hub has answered that it never will."""
    code = getattr(error, "code", 0)
    return 400 <= code < 500 and code not in (408, 429)


def error_reason(error: OSError) -> str:
    code = getattr(error, "code", 0)
    return f"it answers {code}" if code else str(getattr(error, "reason", "") or error)
