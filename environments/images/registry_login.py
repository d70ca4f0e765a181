"""Logs in at a registry: answers its challenges, Basic and Bearer, with a user and a password, or without."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

from environments.images.connection import RegistryConnection
from environments.images.reference import ImageReference
from environments.images.registry_error import RegistryError

MAX_TOKEN_BYTES = 64 * 1024
_PARAMETER = re.compile(r'([a-zA-Z_]+)="([^"]*)"')


@dataclass(frozen=True, repr=False)
class RegistryLogin:
    """The login of a registry. `secret`: the name of the secret that holds it. Without a representation that
    could reach a log."""

    user: str
    password: str
    secret: str

    @property
    def basic(self) -> str:
        return f"Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


def login_of(value: str, secret: str) -> RegistryLogin:
    """Returns the login in the value of a secret. Raises RegistryError for a value of another form."""
    user, colon, password = value.strip().partition(":")
    if not (user and colon and password):
        raise RegistryError(
            f"The secret {secret} is no login of a registry: its value must be user:password, or user:token. "
            "Store it anew under Settings, Secrets."
        )
    return RegistryLogin(user, password, secret)


class Authenticator:
    """Gives the header Authorization for requests to one registry about one image."""

    def __init__(
        self, reference: ImageReference, login: RegistryLogin | None, connection: RegistryConnection
    ) -> None:
        self._reference, self._login, self._connection = reference, login, connection
        self.header = ""

    def answer(self, challenge: str, *, is_plain: bool) -> bool:
        """Sets `header` for the challenge of the registry (WWW-Authenticate). `is_plain`: the registry is
        asked without TLS. Returns whether a request with it may succeed. Raises RegistryError."""
        scheme, _, rest = challenge.partition(" ")
        if scheme.lower() == "basic":
            if self._login is None or self.header:
                return False
            self.header = self._login.basic
            return True
        if scheme.lower() != "bearer" or self.header:
            return False
        self.header = f"Bearer {self._token(dict(_PARAMETER.findall(rest)), is_plain=is_plain)}"
        return True

    def _token(self, parameters: dict[str, str], *, is_plain: bool) -> str:
        realm = urlsplit(parameters.get("realm", ""))
        if not realm.hostname or realm.scheme not in (("https", "http") if is_plain else ("https",)):
            raise RegistryError(
                f"The registry {self._reference.registry} names no service for its login that the hub could "
                "use. Ask its operator."
            )
        scope = parameters.get("scope") or f"repository:{self._reference.repository}:pull"
        query = {"scope": scope} | ({"service": parameters["service"]} if parameters.get("service") else {})
        address = realm._replace(query="&".join(filter(None, (realm.query, urlencode(query)))))
        headers = {"Authorization": self._login.basic} if self._login else {}
        with self._connection.get(address.geturl(), headers) as response:
            if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise login_refused(self._reference, self._login)
            data = self._connection.read(response, MAX_TOKEN_BYTES)
            status = response.status_code
        try:
            body = json.loads(data)
            token = body.get("token") or body["access_token"]
        except (ValueError, KeyError, AttributeError) as error:
            raise RegistryError(
                f"The login service of the registry {self._reference.registry} gave no token (HTTP "
                f"{status}). Try again later."
            ) from error
        return str(token)


def login_refused(reference: ImageReference, login: RegistryLogin | None) -> RegistryError:
    """Returns the sentence about a registry that does not let the hub read the image."""
    if login is None:
        return RegistryError(
            f"The registry {reference.registry} wants a login for {reference.repository}, or has no such "
            "image. Check the name; for a private image store user:password as a secret of the workspace "
            "under Settings, Secrets, and name that secret as the registry's login."
        )
    return RegistryError(
        f"The registry {reference.registry} refuses the login in the secret {login.secret} for "
        f"{reference.repository}. Store the right user:password in that secret under Settings, Secrets, and "
        "see that this account may read the image."
    )
