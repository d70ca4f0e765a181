"""The values of the secrets with which the hub signs in at the package indexes and repositories of a
version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from environments.indexes.index_address import IndexCredentials
from environments.models import EnvironmentVersion
from workspaces.secrets import uses
from workspaces.secrets.errors import SecretsUnavailable
from workspaces.secrets.uses import MissingSecret

MASK = "****"
# Shorter ones are parts of ordinary words; a message of uv names no password anyway.
MIN_MASKED = 4


class SecretRefused(Exception):
    """A secret of an index cannot be had; the message is a sentence with the remedy."""


def index_credentials(
    version: EnvironmentVersion, credentials: Mapping[str, IndexCredentials]
) -> dict[str, IndexCredentials]:
    """Returns the credentials with the values of the workspace's secrets, by the address for which they are,
    and records their use by the version. Raises SecretRefused.

    Never a person's own secret: everybody of the workspace uses what is resolved with it."""
    names = frozenset[str]().union(*(item.secret_names for item in credentials.values()))
    if not names:
        return {}
    try:
        values = uses.take(
            version.environment.owner,
            None,
            names,
            uses.ENVIRONMENT,
            str(version),
            actor=version.created_by,
        )
    except MissingSecret as error:
        listed = ", ".join(sorted(names))
        raise SecretRefused(
            f"An address in the requirements needs the secret {listed}, and the workspace has no such secret "
            "for all its members. An owner stores it at /settings/secrets/; then make the version again."
        ) from error
    except SecretsUnavailable as error:
        raise SecretRefused(f"{error.message[:1].upper()}{error.message[1:]}.") from error
    return {url: item.with_values(values) for url, item in credentials.items()}


def mask_credentials(text: str, credentials: Iterable[IndexCredentials]) -> str:
    """Returns the text without the passwords, also as they stand in an address."""
    values = {value for item in credentials for value in (item.password, item.password or item.username)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= MIN_MASKED:
            for form in (value, quote(value, safe="")):
                text = text.replace(form, MASK)
    return text
