"""What a node may do at the broker: fetch its own wake-ups, and nothing else.

Every node has a user there. Its password follows from the hub's key and the node's token, so nothing is
stored, and a new token or a revocation ends the old one."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, quote, urlsplit

from django.conf import settings
from django.utils.crypto import salted_hmac

from clusters.brokers.errors import BrokerUnavailable, NotAllowed
from clusters.brokers.rabbitmq import RabbitMq
from clusters.brokers.valkey import Valkey
from clusters.models import Node
from trainhub_launch.addresses import is_loopback
from workspaces.tokens import digest

log = logging.getLogger(__name__)
REDIS = ("redis", "rediss", "redis+socket")
RABBITMQ = ("amqp", "amqps")
PLAIN = ("redis", "amqp")
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound
UNNAMED = "localhost"
"""What a broker's URL means that names no host."""
READ_ONLY = "wake-ups:read-only"
"""What a node says of itself that only reads its queue. One of a version before also writes there, and would
fail at once."""
_told: set[str] = set()
_renewed: set[str] = set()
"""The brokers whose users this process has given the rights of this version."""


@dataclass(frozen=True)
class BrokerLogin:
    """How a node listens. `url` empty: not at all; the answers to its reports bring the work.

    `ca`: the authority of the certificate that the broker shows, in PEM; empty where it shows none, or one
    that others know."""

    url: str = ""
    ca: str = ""


def login_for_node(node: Node, asked_host: str, capabilities: Collection[str] = (READ_ONLY,)) -> BrokerLogin:
    """Let the node in at the broker, and say how it gets there. Raises BrokerAway.

    `asked_host`: the name or address under which the node reached the hub. `capabilities`: what the node says
    it can do."""
    if READ_ONLY not in capabilities:
        _tell_once(
            f"Node {node.name} runs an older version of the agent: it gets its work with the answers to its "
            "reports, a few "
            "seconds later than by a wake-up. Install the hub's package on it again (its page under "
            "Clusters has the command)."
        )
        return BrokerLogin()
    broker, base = _broker(), _base(node, asked_host)
    # Asked anew: the caller may have known the node before it was revoked.
    is_welcome = Node.objects.filter(pk=node.pk, token_digest=node.token_digest, revoked_at=None).exists()
    if broker is None or base is None or not is_welcome:
        return BrokerLogin()
    password = _password(node)
    try:
        broker.put_user(node.name, password)
    except NotAllowed as refusal:
        _tell_once(f"Nodes get no wake-ups, only work with the answers to their reports: {refusal}")
        return BrokerLogin()
    ca = Path(settings.BROKER_CA).read_text() if settings.BROKER_CA and base.scheme == "rediss" else ""
    return BrokerLogin(_with_user(base, user_name(node.name), password), ca)


def remove_user(name: str) -> None:
    """End the user of the node `name` and its connections. A broker that is away is mended later."""
    broker = _broker()
    if broker is None:
        return
    try:
        broker.delete_user(name)
    except (BrokerUnavailable, NotAllowed) as error:
        log.warning("The broker's user of node %s could not be removed yet: %s", name, error)


def repair_users() -> None:
    """The broker's users as they should be: a broker that was restarted may have forgotten them, or have
    missed a revocation.

    The first time in a process every user is made anew: it may have the rights and the password of an older
    version."""
    broker = _broker()
    if broker is None:
        return
    is_renewed = settings.BROKER_URL in _renewed
    try:
        known = broker.user_names()
        for node in Node.objects.all():
            if node.revoked_at is None and not (is_renewed and node.name in known):
                broker.put_user(node.name, _password(node))
            elif node.revoked_at is not None and node.name in known:
                broker.delete_user(node.name)
        _renewed.add(settings.BROKER_URL)
    except NotAllowed as refusal:
        _tell_once(f"Nodes get no wake-ups, only work with the answers to their reports: {refusal}")
    except BrokerUnavailable as error:
        log.warning("The broker's users could not be looked at: %s", error)


def user_name(name: str) -> str:
    return f"node.{name}"


def _broker() -> Valkey | RabbitMq | None:
    scheme = urlsplit(settings.BROKER_URL).scheme
    if scheme in REDIS:
        return Valkey(settings.BROKER_URL)
    return RabbitMq(settings.BROKER_URL, settings.RABBITMQ_API_URL) if scheme in RABBITMQ else None


def _password(node: Node) -> str:
    # The name counts the passwords that have travelled without encryption out: nodes of version 1 sent theirs
    # so.
    return salted_hmac("clusters.brokers.2", f"{node.pk}:{node.token_digest}", algorithm="sha256").hexdigest()


def _base(node: Node, asked_host: str) -> SplitResult | None:
    """The broker's address as this node sees it; None where there is no way to it."""
    own = urlsplit(settings.BROKER_URL)
    if _is_of_this_machine(node):
        return own
    if settings.NODE_BROKER_URL:
        _warn_of_plain_text(settings.NODE_BROKER_URL)
        seen = urlsplit(settings.NODE_BROKER_URL)
        host = asked_host if seen.hostname in ANY_ADDRESS else seen.hostname or asked_host
        return seen._replace(
            netloc=_netloc(host, seen.port), path=own.path if own.scheme != "redis+socket" else seen.path
        )
    is_here_alone = own.scheme == "redis+socket" or is_loopback(own.hostname or UNNAMED)
    if is_here_alone and not is_loopback(asked_host or UNNAMED):
        _tell_once(
            "Nodes on other machines get no wake-ups, only work with the answers to their reports: the "
            "broker listens on "
            "this machine alone. Set OPEN=1, or NODE_BROKER_URL to how they reach the broker."
        )
        return None
    if not is_here_alone:
        _warn_of_plain_text(settings.BROKER_URL)
    return own


def _warn_of_plain_text(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme in PLAIN and not is_loopback(parts.hostname or UNNAMED):
        _tell_once(
            f"The broker at {parts.hostname} is reached without encryption: whoever reads the network sees "
            "the nodes' passwords "
            f"there. Give it TLS, and name it as {parts.scheme}s:// in NODE_BROKER_URL or BROKER_URL."
        )


def _is_of_this_machine(node: Node) -> bool:
    file = Path(settings.OWN_NODE_TOKEN_FILE)
    try:
        return digest(file.read_text().strip()) == node.token_digest
    except OSError:
        return False  # `up` did not start this hub


def _with_user(base: SplitResult, user: str, password: str) -> str:
    host = base.netloc.rpartition("@")[2]
    return base._replace(netloc=f"{quote(user)}:{password}@{host}").geturl()


def _netloc(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def _tell_once(sentence: str) -> None:
    if sentence not in _told:
        _told.add(sentence)
        log.warning("%s", sentence)
