"""Secrets of the hub itself: it makes them, and uses them alone. They are encrypted as people's are."""

from __future__ import annotations

from workspaces.models import HubSecret
from workspaces.secrets import keyring
from workspaces.secrets.errors import SecretsUnavailable


def put(name: str, value: str) -> None:
    """Stores the value under this name, in place of an earlier one. Raises SecretsUnavailable.

    `store.make_keyring` comes first where there may be no keys yet."""
    sealed = keyring.load().seal(value, context(name))
    HubSecret.objects.update_or_create(name=name, defaults={"sealed": sealed})


def value_of(name: str) -> str:
    """Returns the value in plain text. Raises SecretsUnavailable, also if there is none."""
    secret = HubSecret.objects.filter(name=name).first()
    if secret is None:
        raise SecretsUnavailable(f"the hub has no secret {name}")
    return keyring.load().open(bytes(secret.sealed), context(name))


def delete(name: str) -> None:
    HubSecret.objects.filter(name=name).delete()


def context(name: str) -> str:
    """Returns what a value is bound to. No context of a person's or workspace's secret begins so."""
    return f"hub|{name}"


def unreadable() -> list[tuple[str, str]]:
    """Returns the names of those that cannot be decrypted, with the reason."""
    broken = []
    for name in HubSecret.objects.order_by("name").values_list("name", flat=True):
        try:
            value_of(name)
        except SecretsUnavailable as error:
            broken.append((name, error.message))
    return broken
