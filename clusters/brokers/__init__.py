"""What a node may do at the broker: fetch its own wake-ups, and nothing else.

Every node has a user there. Its password follows from the hub's key and the node's token, so nothing is stored,
and a new token or a revocation ends the old one.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from django.conf import settings
from django.utils.crypto import salted_hmac

from clusters.brokers.errors import BrokerAway, NotAllowed
from clusters.brokers.rabbitmq import RabbitMq
from clusters.brokers.valkey import Valkey
from clusters.models import Node
from trainhub_launch.addresses import is_loopback
from workspaces.tokens import digest

log = logging.getLogger(__name__)
REDIS = ("redis", "rediss", "redis+socket")
RABBITMQ = ("amqp", "amqps")
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound
UNNAMED = "localhost"
"""What a broker's URL means that names no host."""
SOCKET_OPTIONS = {"socket_timeout": 30, "socket_connect_timeout": 5, "socket_keepalive": True}
_told: set[str] = set()


@dataclass(frozen=True)
class Line:
    """How a node listens. `url` empty: not at all; the answers to its reports bring the work."""

    url: str = ""
    transport_options: dict[str, Any] = field(default_factory=dict)


def line_of(node: Node, asked_host: str) -> Line:
    """Let the node in at the broker, and say how it gets there. Raises BrokerAway.

    `asked_host`: the name or address under which the node reached the hub.
    """
    broker, base = _broker(), _base(node, asked_host)
    # Asked anew: the caller may have known the node before it was revoked.
    is_welcome = Node.objects.filter(pk=node.pk, token_digest=node.token_digest, revoked_at=None).exists()
    if broker is None or base is None or not is_welcome:
        return Line()
    password = _password(node)
    try:
        broker.allow(node.name, password)
    except NotAllowed as refusal:
        _tell_once(f"Nodes get no wake-ups, only work with the answers to their reports: {refusal}")
        return Line()
    return Line(_with_user(base, user_of(node.name), password), _options(node) if base.scheme in REDIS else {})


def withdraw(name: str) -> None:
    """End the user of the node `name` and its connections. A broker that is away is mended later."""
    broker = _broker()
    if broker is None:
        return
    try:
        broker.forbid(name)
    except (BrokerAway, NotAllowed) as error:
        log.warning("The broker's user of node %s could not be removed yet: %s", name, error)


def mend() -> None:
    """The broker's users as they should be: a broker that was restarted may have forgotten them, or have missed a revocation."""
    broker = _broker()
    if broker is None:
        return
    try:
        known = broker.known()
        for node in Node.objects.all():
            if node.revoked_at is None and node.name not in known:
                broker.allow(node.name, _password(node))
            elif node.revoked_at is not None and node.name in known:
                broker.forbid(node.name)
    except NotAllowed as refusal:
        _tell_once(f"Nodes get no wake-ups, only work with the answers to their reports: {refusal}")
    except BrokerAway as error:
        log.warning("The broker's users could not be looked at: %s", error)


def user_of(name: str) -> str:
    return f"node.{name}"


def _broker() -> Valkey | RabbitMq | None:
    scheme = urlsplit(settings.BROKER_URL).scheme
    if scheme in REDIS:
        return Valkey(settings.BROKER_URL)
    return RabbitMq(settings.BROKER_URL, settings.RABBITMQ_API_URL) if scheme in RABBITMQ else None


def _password(node: Node) -> str:
    return salted_hmac("clusters.brokers", f"{node.pk}:{node.token_digest}", algorithm="sha256").hexdigest()


def _base(node: Node, asked_host: str) -> SplitResult | None:
    """The broker's address as this node sees it; None where there is no way to it."""
    own = urlsplit(settings.BROKER_URL)
    if _is_of_this_machine(node):
        return own
    if settings.NODE_BROKER_URL:
        seen = urlsplit(settings.NODE_BROKER_URL)
        host = asked_host if seen.hostname in ANY_ADDRESS else seen.hostname or asked_host
        return seen._replace(netloc=_netloc(host, seen.port), path=own.path if own.scheme != "redis+socket" else seen.path)
    is_here_alone = own.scheme == "redis+socket" or is_loopback(own.hostname or UNNAMED)
    if is_here_alone and not is_loopback(asked_host or UNNAMED):
        _tell_once(
            "Nodes on other machines get no wake-ups, only work with the answers to their reports: the broker listens on "
            "this machine alone. Set OPEN=1, or NODE_BROKER_URL to how they reach the broker."
        )
        return None
    return own


def _is_of_this_machine(node: Node) -> bool:
    file = Path(settings.OWN_NODE_TOKEN_FILE)
    try:
        return digest(file.read_text().strip()) == node.token_digest
    except OSError:
        return False  # `up` did not start this hub


def _with_user(base: SplitResult, user: str, password: str) -> str:
    host = base.netloc.rpartition("@")[2]
    return base._replace(netloc=f"{quote(user)}:{password}@{host}").geturl()


def _options(node: Node) -> dict[str, Any]:
    """Keys below the node's own name: nothing else is open to its user."""
    keys = ("unacked", "unacked_index", "unacked_mutex")
    return {**SOCKET_OPTIONS, **{f"{key}_key": f"node.{node.name}.{key}" for key in keys}}


def _netloc(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def _tell_once(sentence: str) -> None:
    if sentence not in _told:
        _told.add(sentence)
        log.warning("%s", sentence)
