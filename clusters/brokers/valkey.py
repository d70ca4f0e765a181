"""Node users on Valkey and Redis: one ACL user per node, which may only wait on its own queue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import redis
from redis.exceptions import MasterDownError, OutOfMemoryError, ReadOnlyError, TryAgainError

from clusters.brokers.errors import BrokerPermissionError, BrokerUnavailable
from workspaces.servers.meeting_places import redis_py_url

PREFIX = "node."
QUEUE_SUFFIX = ".wake"
# The commands that a node's Celery worker needs. Both are cheap: they store nothing and run no script, so a
# node cannot block the server for other clients. Transactions are not allowed, because they run any number of
# commands while other clients wait. Writing is not allowed, because the hub would have to read the data.
COMMANDS = ("ping", "brpop")
GRANT_HELP = (
    "the hub's user at the broker may not manage users there. Let it (ACL SETUSER <user> +acl), "
    "and give it the rights that it is to pass on"
)
# A server that loads its data raises a ConnectionError.
TEMPORARY_ERRORS = (
    redis.ConnectionError,
    redis.TimeoutError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    TryAgainError,
)
# The beginning of the error of a server that runs a long script; redis-py has no class for it.
BUSY = "BUSY"


class ValkeyBroker:
    """Manages the users of nodes on the server at Celery's `url`. Methods raise BrokerUnavailable and
    BrokerPermissionError."""

    def __init__(self, url: str) -> None:
        self._url = redis_py_url(url)
        self._database = _database(self._url)

    def put_user(self, name: str, password: str) -> None:
        """Creates or updates the user of the node `name`."""
        # "reset" first: the user may exist with wider rights, or passwords, of an older version of the hub.
        user = PREFIX + name
        commands = [f"+{command}" for command in COMMANDS]
        if self._database != "0":
            # A client selects the database first.
            commands.append("+select")
        rules = ("reset", "resetchannels", f"~{user}{QUEUE_SUFFIX}", *commands, f">{password}", "on")
        # One command, hence atomic: there is no moment in which the user has no limits.
        with self._client() as server:
            server.execute_command("ACL SETUSER", user, *rules)

    def delete_user(self, name: str) -> None:
        """Deletes the user of the node `name`; the server then closes the user's connections."""
        with self._client() as server:
            server.execute_command("ACL DELUSER", PREFIX + name)

    def user_names(self) -> set[str]:
        """Returns the names of the nodes that have a user."""
        with self._client() as server:
            users = [str(name) for name in server.execute_command("ACL USERS")]
        return {user.removeprefix(PREFIX) for user in users if user.startswith(PREFIX)}

    @contextmanager
    def _client(self) -> Iterator[Any]:
        server = redis.Redis.from_url(
            self._url, decode_responses=True, socket_timeout=5, socket_connect_timeout=2
        )
        try:
            yield server
        except TEMPORARY_ERRORS as error:
            raise BrokerUnavailable(str(error)) from error
        except redis.ResponseError as error:
            if str(error).startswith(BUSY):
                raise BrokerUnavailable(str(error)) from error
            raise BrokerPermissionError(f"{GRANT_HELP} ({error})") from error
        finally:
            server.close()


def _database(url: str) -> str:
    """Returns the number of the database that redis-py selects for `url`."""
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("db", [""])[0]
    return database or ("0" if parts.scheme == "unix" else parts.path.strip("/") or "0")
