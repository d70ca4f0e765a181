"""Node users on RabbitMQ, managed through its management plugin: each may only read its own queue."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote, urlsplit

import httpx

from clusters.brokers.errors import BrokerPermissionError, BrokerUnavailable

PREFIX = "node."
# A permission is a regular expression over the names of queues and exchanges; "^$" matches no name.
MATCH_NOTHING = "^$"
# Limits of a node's user. An agent has one connection with a few channels; those of a killed agent may stay
# open for some time.
LIMITS = {"max-connections": 8, "max-channels": 32}
API_URL_HELP = (
    "set RABBITMQ_API_URL to the address of RabbitMQ's management plugin, with a user that is an "
    "administrator there"
)


class RabbitMqBroker:
    """Manages the users of nodes on the virtual host of Celery's `url`, through the management plugin at
    `api_url` (http://user:password@host:15672). Methods raise BrokerUnavailable and BrokerPermissionError."""

    def __init__(self, url: str, api_url: str) -> None:
        self._vhost = quote(unquote(urlsplit(url).path.removeprefix("/")) or "/", safe="")
        parts = urlsplit(api_url)
        # Removed from the address, which appears in logs and errors.
        self._who = httpx.BasicAuth(unquote(parts.username or ""), unquote(parts.password or ""))
        self._api_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def put_user(self, name: str, password: str) -> None:
        user, queue = PREFIX + name, f"{PREFIX}{name}.wake"
        self._ask("PUT", f"/api/users/{user}", {"password": password, "tags": ""})
        for limit, value in LIMITS.items():
            self._ask("PUT", f"/api/user-limits/{user}/{limit}", {"value": value})
        # A node may not declare its queue. The arguments must equal those that Celery uses when the hub sends
        # the first wake-up.
        self._ask(
            "PUT",
            f"/api/queues/{self._vhost}/{queue}",
            {"durable": True, "auto_delete": False, "arguments": {}},
        )
        rights = {"configure": MATCH_NOTHING, "write": MATCH_NOTHING, "read": f"^{re.escape(queue)}$"}
        self._ask("PUT", f"/api/permissions/{self._vhost}/{user}", rights)

    def delete_user(self, name: str) -> None:
        """Deletes the user of the node `name`; the server then closes the user's connections."""
        self._ask("DELETE", f"/api/users/{PREFIX}{name}")

    def user_names(self) -> set[str]:
        users = [str(user["name"]) for user in self._ask("GET", "/api/users")]
        return {user.removeprefix(PREFIX) for user in users if user.startswith(PREFIX)}

    def _ask(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> Sequence[Mapping[str, object]]:
        """Sends a request to the management plugin. Returns the listed objects for GET, and nothing for other
        methods."""
        if not self._api_url:
            raise BrokerPermissionError(API_URL_HELP)
        try:
            answer = httpx.request(
                method, self._api_url + path, json=body, auth=self._who, timeout=5.0, trust_env=False
            )
        except httpx.HTTPError as error:
            raise BrokerUnavailable(f"RabbitMQ's management plugin does not answer: {error}") from error
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise BrokerPermissionError(
                f"RabbitMQ's management plugin refuses the user of RABBITMQ_API_URL; {API_URL_HELP}"
            )
        # Deleting a user that is gone already is no error.
        is_gone = method == "DELETE" and answer.status_code == httpx.codes.NOT_FOUND
        if not (answer.is_success or is_gone):
            raise BrokerUnavailable(f"RabbitMQ's management plugin answered {answer.status_code}")
        items: Sequence[Mapping[str, object]] = answer.json() if method == "GET" else []
        return items
