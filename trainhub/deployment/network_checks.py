"""What other machines can read, or pretend, on the way to the hub."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Warning
from django.db import DatabaseError
from django.utils import timezone

from trainhub import env, installation
from trainhub.deployment.stored_facts import log_systems
from trainhub.serving.proxies import trusted_proxies
from trainhub.serving.proxy_warnings import proxy_warnings

PROXY_EXAMPLES = "docs/network.md has examples for nginx and Caddy"
# Networks with more addresses than this hold more than an operator's proxies.
MAX_PROXY_ADDRESSES = 2**16
UNENCRYPTED = {"redis": "rediss", "amqp": "amqps"}


def plain_http() -> list[CheckMessage]:
    if settings.IS_ON_LOOPBACK_ONLY or settings.BEHIND_TLS:
        return []
    text = f"Other machines reach {settings.PUBLIC_URL} by plain HTTP: passwords and tokens can be read."
    hint = (
        "Set OPEN=1: the hub then makes a certificate, or takes yours (TLS_CERT_FILE, TLS_KEY_FILE). Or let "
        f"a proxy speak TLS: {PROXY_EXAMPLES}."
    )
    return [Warning(text, hint=hint, id="trainhub.W003")]


def unnamed_proxies() -> list[CheckMessage]:
    if trusted_proxies() or not installation.is_open() or installation.certificate() is not None:
        return []
    text = "No proxy is named, so everybody behind yours counts as one address where guessing is slowed down."
    hint = "Set TRUSTED_PROXIES to the addresses of your proxies, for example TRUSTED_PROXIES=127.0.0.1."
    return [Warning(text, hint=hint, id="trainhub.W004")]


def wide_proxies() -> list[CheckMessage]:
    wide = [word for word in trusted_proxies().words if _addresses(word) > MAX_PROXY_ADDRESSES]
    if not wide:
        return []
    text = f"TRUSTED_PROXIES={','.join(wide)}: whoever is in these networks can claim any address."
    hint = "Name only the addresses of your proxies, or the network that they alone are in."
    return [Warning(text, hint=hint, id="trainhub.W005")]


def removed_headers() -> list[CheckMessage]:
    """What the proxy has removed from requests of the last minutes."""
    try:
        warnings = proxy_warnings(timezone.now())
    except DatabaseError:
        return []  # before the first migration there is no table
    return [Warning(warning.text, hint=warning.remedy, id="trainhub.W018") for warning in warnings]


def wide_hosts() -> list[CheckMessage]:
    wide = [name for name in env.split_words("ALLOWED_HOSTS") if _is_wide(name)]
    if not wide:
        return []
    text = (
        f"ALLOWED_HOSTS={','.join(wide)} answers to names that are not yours, such as those of an attacker."
    )
    hint = (
        "Name the hosts at which people and nodes reach the hub; those of PUBLIC_URL and BIND are included."
    )
    return [Warning(text, hint=hint, id="trainhub.W006")]


def unencrypted_broker() -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    for name, url in _brokers():
        parts = urlsplit(url)
        if parts.scheme in UNENCRYPTED and not _is_own_machine(parts.hostname or ""):
            text = (
                f"{name} leads to {parts.hostname} without TLS: others can read passwords and send wake-ups."
            )
            hint = (
                f"Use {UNENCRYPTED[parts.scheme]}:// once the server speaks TLS. Where only the hub, its "
                "nodes and that server are in one network, as in a compose file, this is no danger."
            )
            messages.append(Warning(text, hint=hint, id="trainhub.W007"))
    return messages


def unencrypted_log_systems() -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    for who, url in _log_systems():
        parts = urlsplit(url)
        if parts.scheme == "http" and not _is_own_machine(parts.hostname or ""):
            text = (
                f"The log system of {who} is reached at {parts.hostname} without TLS: others can read the "
                "lines of runs, and the headers that open it."
            )
            hint = (
                "Use its https:// address once it speaks TLS (docs/log-shipping.md). Where only the hub and "
                "that server are in one network, this is no danger."
            )
            messages.append(Warning(text, hint=hint, id="trainhub.W020"))
    return messages


def _log_systems() -> Iterator[tuple[str, str]]:
    """Yields whose each is, with its address."""
    if settings.LOG_DESTINATION is not None:
        yield "SHIP_LOGS_TO", settings.LOG_DESTINATION.url
    for target in log_systems():
        yield f"the workspace {target.workspace}", target.url


def _brokers() -> Iterator[tuple[str, str]]:
    """Yields the addresses that an operator has set, by the setting."""
    yield "REDIS_URL", installation.configured_redis_url()
    yield "BROKER_URL", installation.configured_broker_url()
    # Only what is set: the embedded broker speaks TLS to other machines.
    if env.text("NODE_BROKER_URL", ""):
        yield "NODE_BROKER_URL", installation.node_broker_url()


def _is_own_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in ("", "localhost")


def _is_wide(name: str) -> bool:
    """Returns whether the name stands for all names, or for all below a top level such as `.org`."""
    return name == "*" or (name.startswith(".") and name.count(".") == 1)


def _addresses(word: str) -> int:
    return ipaddress.ip_network(word).num_addresses
