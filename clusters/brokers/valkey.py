"""Users of nodes on Valkey and Redis: one ACL user each, which may wait at its own queue and do nothing
else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import redis

from clusters.brokers.errors import BrokerUnavailable, NotAllowed

PREFIX = "node."
QUEUE_SUFFIX = ".wake"
COMMANDS = ("ping", "brpop")
"""All that a node's Celery worker sends. The cost of both is that of their own bytes: nothing is stored, no
script runs, and no number of them is carried out in one go, so a node cannot keep the server from its other
clients. A transaction can: it collects any number of reads and runs them while everybody else waits. And what
a node may write, the hub has to read."""
GRANT = (
    "the hub's user at the broker may not manage users there. Let it (ACL SETUSER <user> +acl), "
    "and give it the rights that it is to pass on"
)
PASSING = ("BUSY", "LOADING", "MASTERDOWN", "OOM", "READONLY", "TRYAGAIN")
"""How the answers of a server begin that cannot do it now."""


class Valkey:
    """The server at Celery's `url`, seen by the hub."""

    def __init__(self, url: str) -> None:
        self._url = _url_of_client(url)
        self._database = _database(self._url)

    def put_user(self, name: str, password: str) -> None:
        """Make the user of the node `name`, or make it what it should be."""
        user = PREFIX + name
        commands = [f"+{command}" for command in COMMANDS]
        if self._database != "0":
            # A client chooses the database before anything else.
            commands.append("+select")
        rules = ("reset", "resetchannels", f"~{user}{QUEUE_SUFFIX}", *commands, f">{password}", "on")
        with self._asked() as server:
            server.execute_command("ACL SETUSER", user, *rules)

    def delete_user(self, name: str) -> None:
        """The server ends the user's connections together with the user."""
        with self._asked() as server:
            server.execute_command("ACL DELUSER", PREFIX + name)

    def user_names(self) -> set[str]:
        """The names of the nodes that have a user."""
        with self._asked() as server:
            users = [str(name) for name in server.execute_command("ACL USERS")]
        return {user.removeprefix(PREFIX) for user in users if user.startswith(PREFIX)}

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        server = redis.Redis.from_url(
            self._url, decode_responses=True, socket_timeout=5, socket_connect_timeout=2
        )
        try:
            yield server
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise BrokerUnavailable(str(error)) from error
        except redis.ResponseError as error:
            if str(error).startswith(PASSING):
                raise BrokerUnavailable(str(error)) from error
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


def _database(url: str) -> str:
    """The number of the database that redis-py chooses for `url`."""
    parts = urlsplit(url)
    given = parse_qs(parts.query).get("db", [""])[0]
    return given or ("0" if parts.scheme == "unix" else parts.path.strip("/") or "0")
