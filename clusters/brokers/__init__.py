"""Broker users of the nodes: each node may fetch its own wake-ups and nothing else.

The password is derived from the hub's key and the node's token. It is therefore not stored, and a new token
or a revocation invalidates it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, urlsplit

from django.conf import settings
from django.utils.crypto import salted_hmac
from django.utils.module_loading import import_string

from clusters.brokers.errors import BrokerPermissionError, BrokerUnavailable
from clusters.brokers.valkey import ValkeyBroker
from clusters.models import Node, SlurmPartition
from trainhub_launch.addresses import is_loopback
from workspaces.authentication.token_text import digest

if TYPE_CHECKING:
    from clusters.brokers.rabbitmq import RabbitMqBroker

log = logging.getLogger(__name__)
RABBITMQ = ("amqp", "amqps")
UNENCRYPTED = ("redis", "amqp")
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound
# The host of a broker URL that names none.
DEFAULT_HOST = "localhost"
# Capability of agents that only read their queue. Older agents also write to it and would fail at once.
READ_ONLY = "wake-ups:read-only"
_logged: set[str] = set()
# URLs of brokers whose users have received the permissions of this version from this process.
_renewed_brokers: set[str] = set()


@dataclass(frozen=True)
class BrokerLogin:
    """The connection of a node to the broker. `url` empty: none; the answers to its reports bring the work.

    `ca`: PEM of the authority of the broker's certificate; empty without TLS or for a public authority."""

    url: str = ""
    ca: str = ""


def login_for_node(node: Node, hub_host: str, capabilities: Collection[str] = (READ_ONLY,)) -> BrokerLogin:
    """Creates the node's user at the broker and returns its connection. Raises BrokerUnavailable.

    `hub_host`: the host name or address under which the node reached the hub. `capabilities`: those that
    the agent announces."""
    if READ_ONLY not in capabilities:
        _warn_once(
            f"Node {node.name} runs an older version of the agent: it gets its work with the answers to its "
            "reports, a few seconds later than by a wake-up. Install the hub's package on it again (its page "
            "under Clusters has the command)."
        )
        return BrokerLogin()
    if _uses_relay(node):
        return BrokerLogin()
    broker, base = _broker(), _base(node, hub_host)
    # Queried again, because the caller may have loaded the node before it was revoked.
    is_valid = Node.objects.filter(pk=node.pk, token_digest=node.token_digest, revoked_at=None).exists()
    if base is None or not is_valid:
        return BrokerLogin()
    password = _password(node)
    try:
        broker.put_user(node.name, password)
    except BrokerPermissionError as refusal:
        _warn_once(f"Nodes get no wake-ups, only work with the answers to their reports: {refusal}")
        return BrokerLogin()
    ca = Path(settings.BROKER_CA).read_text() if settings.BROKER_CA and base.scheme == "rediss" else ""
    return BrokerLogin(_with_user(base, user_name(node.name), password), ca)


def remove_user(name: str) -> None:
    """Removes the broker user of the node `name`. If the broker is unavailable, `repair_users` does it."""
    try:
        _broker().delete_user(name)
    except (BrokerUnavailable, BrokerPermissionError) as error:
        log.warning("The broker's user of node %s could not be removed yet: %s", name, error)


def repair_users() -> None:
    """Creates missing broker users and removes those of revoked nodes: a restarted broker may have lost users
    or missed a revocation.

    The first call in a process updates every user, which may have permissions and passwords of an older
    version."""
    broker = _broker()
    is_renewed = settings.BROKER_URL in _renewed_brokers
    try:
        user_names = broker.user_names()
        for node in Node.objects.all():
            if node.revoked_at is None and not (is_renewed and node.name in user_names):
                broker.put_user(node.name, _password(node))
            elif node.revoked_at is not None and node.name in user_names:
                broker.delete_user(node.name)
        _renewed_brokers.add(settings.BROKER_URL)
    except BrokerPermissionError as refusal:
        _warn_once(f"Nodes get no wake-ups, only work with the answers to their reports: {refusal}")
    except BrokerUnavailable as error:
        log.warning("The broker's users could not be checked: %s", error)


def user_name(name: str) -> str:
    return f"node.{name}"


def _broker() -> ValkeyBroker | RabbitMqBroker:
    if urlsplit(settings.BROKER_URL).scheme not in RABBITMQ:
        return ValkeyBroker(settings.BROKER_URL)
    # Its HTTP client takes 70 ms and 10 MiB to load, also where the broker is Valkey.
    rabbitmq: type[RabbitMqBroker] = import_string("clusters.brokers.rabbitmq.RabbitMqBroker")
    return rabbitmq(settings.BROKER_URL, settings.RABBITMQ_API_URL)


def _password(node: Node) -> str:
    # The salt has a version: passwords of version 1 were sent without encryption and must not be valid.
    return salted_hmac("clusters.brokers.2", f"{node.pk}:{node.token_digest}", algorithm="sha256").hexdigest()


def _base(node: Node, hub_host: str) -> SplitResult | None:
    """Returns the broker's address for this node, or None if the node cannot reach the broker."""
    own = urlsplit(settings.BROKER_URL)
    if _is_of_this_machine(node):
        return own
    if settings.NODE_BROKER_URL:
        _warn_of_plain_text(settings.NODE_BROKER_URL)
        public_url = urlsplit(settings.NODE_BROKER_URL)
        host = hub_host if public_url.hostname in ANY_ADDRESS else public_url.hostname or hub_host
        return public_url._replace(
            netloc=_netloc(host, public_url.port),
            # The path is the database or virtual host, which all addresses of one broker share; in the URL of
            # a socket it is the path of a file.
            path=own.path if own.scheme != "redis+socket" else public_url.path,
        )
    is_here_alone = own.scheme == "redis+socket" or is_loopback(own.hostname or DEFAULT_HOST)
    if is_here_alone and not is_loopback(hub_host or DEFAULT_HOST):
        _warn_once(
            "Nodes on other machines get no wake-ups, only work with the answers to their reports: the "
            "broker listens on this machine only. Set OPEN=1, or set NODE_BROKER_URL to the address under "
            "which they reach the broker."
        )
        return None
    if not is_here_alone:
        _warn_of_plain_text(settings.BROKER_URL)
    return own


def _warn_of_plain_text(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme in UNENCRYPTED and not is_loopback(parts.hostname or DEFAULT_HOST):
        _warn_once(
            f"The broker at {parts.hostname} is reached without encryption, so the nodes' passwords can be "
            f"read on the network. Set up TLS and use {parts.scheme}s:// in NODE_BROKER_URL or BROKER_URL."
        )


def _uses_relay(node: Node) -> bool:
    """Whether the node reaches the hub through a login node, which forwards the web server's port alone."""
    return (
        SlurmPartition.objects.filter(cluster=node.cluster_id, relay_port__gt=0)
        .exclude(command_host="")
        .exists()
    )


def _is_of_this_machine(node: Node) -> bool:
    # The token of the node that `up` starts beside the hub is in a file here; tokens of other nodes exist
    # only there.
    file = Path(settings.OWN_NODE_TOKEN_FILE)
    try:
        return digest(file.read_text().strip()) == node.token_digest
    except OSError:
        return False  # `up` did not start this hub


def _with_user(base: SplitResult, user: str, password: str) -> str:
    host = base.netloc.rpartition("@")[2]
    return base._replace(netloc=f"{quote(user)}:{password}@{host}").geturl()


def _netloc(host: str, port: int | None) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port is None else f"{bracketed}:{port}"


def _warn_once(sentence: str) -> None:
    if sentence not in _logged:
        _logged.add(sentence)
        log.warning("%s", sentence)
