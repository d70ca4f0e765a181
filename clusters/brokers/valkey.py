"""Users of nodes on Valkey and Redis: one ACL user each, open to the keys below the node's own name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import redis

from clusters.brokers.errors import BrokerAway, NotAllowed

PREFIX = "node."
COMMANDS = (
    "ping", "multi", "exec", "discard", "watch", "unwatch",
    "llen", "brpop", "rpush", "lpush", "sadd", "smembers",
    "hset", "hget", "hdel", "zadd", "zrem", "zrange", "zrevrangebyscore",
    "set", "get", "del", "evalsha", "script|load",
)
"""What a Celery worker sends for one queue without events and remote control, found by watching one. A script runs with
the rights of its caller; the only one is that of redis-py's lock around messages to put back."""
GRANT = (
    "the hub's user at the broker may not manage users there. Let it (ACL SETUSER <user> +acl), "
    "and give it the rights that it is to pass on"
)


class Valkey:
    """The server at Celery's `url`, seen by the hub."""

    def __init__(self, url: str) -> None:
        self._url = _url_of_client(url)

    def allow(self, name: str, password: str) -> None:
        """Make the user of the node `name`, or make it what it should be."""
        keys = (f"~{PREFIX}{name}.*", f"~_kombu.binding.{PREFIX}{name}.*", f"~_kombu.binding_permanent.{PREFIX}{name}.*")
        commands = (f"+{command}" for command in COMMANDS)
        rules = ("reset", "resetchannels", *keys, *commands, f">{password}", "on")
        with self._asked() as server:
            server.execute_command("ACL SETUSER", PREFIX + name, *rules)

    def forbid(self, name: str) -> None:
        """The server ends the user's connections together with the user."""
        with self._asked() as server:
            server.execute_command("ACL DELUSER", PREFIX + name)

    def known(self) -> set[str]:
        """The names of the nodes that have a user."""
        with self._asked() as server:
            users = [str(name) for name in server.execute_command("ACL USERS")]
        return {user.removeprefix(PREFIX) for user in users if user.startswith(PREFIX)}

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        server = redis.Redis.from_url(self._url, decode_responses=True, socket_timeout=5, socket_connect_timeout=2)
        try:
            yield server
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise BrokerAway(str(error)) from error
        except redis.ResponseError as error:
            raise NotAllowed(f"{GRANT} ({error})") from error
        finally:
            server.close()


def _url_of_client(url: str) -> str:
    """The URL that redis-py wants for the server that Celery finds at `url`."""
    if not url.startswith("redis+socket://"):
        return url
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("virtual_host")
    return parts._replace(scheme="unix", query=f"db={database[0]}" if database else "").geturl()
