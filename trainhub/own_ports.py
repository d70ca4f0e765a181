"""The ports that belong to this installation, for programs that must avoid them."""

from __future__ import annotations

from urllib.parse import urlsplit

from trainhub import env, installation

USUAL_PORTS = {
    "redis": 6379,
    "rediss": 6379,
    "amqp": 5672,
    "amqps": 5671,
    "postgres": 5432,
    "postgresql": 5432,
    "http": 80,
    "https": 443,
}


def own_ports() -> set[int]:
    """Returns the TCP ports on which the hub, its database and its brokers listen, as far as settings name
    them."""
    used = {installation.bind().port}
    if (broker := installation.broker_bind()) is not None:
        used.add(broker.port)
    addresses = (
        installation.redis_url(),
        installation.broker_url(),
        installation.node_broker_url(),
        installation.rabbitmq_api_url(),
    )
    for url in (*addresses, env.secret("DATABASE_URL")):
        parts = urlsplit(url)
        port = (parts.port or USUAL_PORTS.get(parts.scheme, 0)) if parts.hostname else 0
        used |= {port} if port else set()
    return used
