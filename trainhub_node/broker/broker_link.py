"""The connection to the node's queue of wake-ups: what the hub's answer determines, and what the node
decides itself."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from kombu.connection import Connection

from trainhub_launch.addresses import is_loopback
from trainhub_node.broker.broker_address import InvalidBrokerLink
from trainhub_node.broker.transport import PinnedTransport

QUEUE = re.compile(r"node\.[A-Za-z0-9_.-]{1,100}")
REDIS, REDIS_TLS, SOCKET, AMQP, AMQP_TLS = "redis", "rediss", "redis+socket", "amqp", "amqps"
SCHEMES = (REDIS, REDIS_TLS, SOCKET, AMQP, AMQP_TLS)
CONNECT_TIMEOUT_S = 5.0
REDIS_OPTIONS = {
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    # Wake-ups are taken and nothing is written back: a lost one comes again with the answer to the next
    # report. So the node's user at the broker needs neither scripts nor transactions, which could block the
    # server for all others.
    "ack_emulation": False,
    # One queue, not one for each priority.
    "priority_steps": [0],
    # Seconds that one poll of the queue waits at the server. Each costs a message both ways, even
    # when the queue is empty; but an agent that ends waits for the answer to its last one.
    "polling_interval": 1,
}


@dataclass(frozen=True)
class BrokerLink:
    """`tls`: Kombu's options for an encrypted connection, empty for one that is not encrypted."""

    url: str
    queue: str
    transport: type[PinnedTransport] | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    tls: Mapping[str, object] = field(default_factory=dict)

    @property
    def celery_settings(self) -> dict[str, object]:
        return {
            "broker_url": self.url,
            "broker_transport": self.transport,
            "broker_transport_options": dict(self.options),
            "broker_use_ssl": dict(self.tls),
        }

    def connection(self) -> Connection:
        return Connection(
            self.url,
            transport=self.transport,
            connect_timeout=CONNECT_TIMEOUT_S,
            transport_options=dict(self.options),
            ssl=dict(self.tls) or False,
        )


def from_config(config: Mapping[str, Any], hub_ca: Path | None = None) -> BrokerLink | None:
    """Returns the link that the hub's answer describes, None if it names no broker. Raises InvalidBrokerLink.

    A broker with a certificate of the hub's own authority (`broker_ca`) is checked against the authority
    that this node pinned when it joined, else against the one in the answer, which came over the
    connection to the hub."""
    url, queue = config["broker_url"], config["queue"]
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise InvalidBrokerLink(
            f"a broker of the kind {parts.scheme!r:.50} is not supported, only {', '.join(SCHEMES)}"
        )
    if not isinstance(queue, str) or not QUEUE.fullmatch(queue):
        raise InvalidBrokerLink(f"{queue!r:.100} is not the name of a node's queue")
    authority = str(config.get("broker_ca", ""))
    if authority and hub_ca is not None:
        authority = hub_ca.read_text()
    if parts.scheme == REDIS_TLS:
        return _redis_over_tls(parts, queue, authority)
    if parts.scheme == AMQP_TLS:
        trust = {
            "context": {"check_hostname": True, "cadata": authority or None},
            "server_hostname": parts.hostname,
        }
        return BrokerLink(url, queue, tls=trust)
    return BrokerLink(url, queue, options={} if parts.scheme == AMQP else REDIS_OPTIONS)


def is_encrypted(link: BrokerLink) -> bool:
    """Returns whether nobody on the network can read the connection. Within this machine there is no
    network."""
    parts = urlsplit(link.url)
    return bool(link.tls) or parts.scheme == SOCKET or is_loopback(parts.hostname or "localhost")


def _redis_over_tls(parts: SplitResult, queue: str, authority: str) -> BrokerLink:
    if authority:
        # Trust options in the URL count only for a broker that the operator chose.
        tls = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, "ssl_ca_data": authority}
        return BrokerLink(parts._replace(query="").geturl(), queue, PinnedTransport, REDIS_OPTIONS, tls)
    tls = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True}
    return BrokerLink(parts.geturl(), queue, None, REDIS_OPTIONS, tls)
