"""Node users on RabbitMQ, managed through its management plugin: each may only read its own queue."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

from clusters.brokers.errors import BrokerPermissionError, BrokerUnavailable

PREFIX = "node."
MATCH_NOTHING = "^$"
LIMITS = {"max-connections": 8, "max-channels": 32}
"""Limits of a node's user. An agent has one connection with a few channels; those of a killed agent may stay
open for some time."""
API_URL_HELP = (
    "set RABBITMQ_API_URL to the address of RabbitMQ's management plugin, with a user that is an "
    "administrator there"
)


class RabbitMqBroker:
    """The virtual host of Celery's `url`, managed at `api_url` (http://user:password@host:15672)."""

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
        """The server ends the user's connections together with the user."""
        self._ask("DELETE", f"/api/users/{PREFIX}{name}")

    def user_names(self) -> set[str]:
        users = [str(user["name"]) for user in self._ask("GET", "/api/users")]
        return {user.removeprefix(PREFIX) for user in users if user.startswith(PREFIX)}

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
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
        if answer.is_error and answer.status_code != httpx.codes.NOT_FOUND:
            raise BrokerUnavailable(f"RabbitMQ's management plugin answered {answer.status_code}")
        return answer.json() if method == "GET" and answer.is_success else []
