"""Replaces the key of all secrets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.db import transaction

from workspaces import audit
from workspaces.models import HubSecret, Secret
from workspaces.secrets import hub_secrets, keyring, store
from workspaces.secrets.errors import SecretsUnavailable

# How long a request may take between reading the keys and storing what it encrypted with them.
SETTLE_S = 2.0
# All tables with encrypted values, and what a value of a row is bound to.
TABLES: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (Secret, store.context),
    (HubSecret, lambda secret: hub_secrets.context(secret.name)),
)


def rotate(who: str) -> int:
    """Encrypts every secret with a new key, and removes the old keys. Returns the number of secrets. Raises
    SecretsUnavailable, with all keys kept, if one cannot be decrypted.

    It can be interrupted at any moment, and called again: a key is removed only when no secret needs it."""
    old = keyring.load()
    broken = [secret.name for secret, _ in store.unreadable(Secret.objects.order_by("pk"))]
    broken += [name for name, _ in hub_secrets.unreadable()]
    if broken:
        names = ", ".join(sorted(set(broken)))
        raise SecretsUnavailable(
            f"{len(broken)} of the secrets cannot be decrypted ({names}); `manage.py secrets check` says why"
        )
    new = keyring.new_key()
    keyring.replace([new, *old.keys])
    count = _encrypt_anew(new.id)
    # Requests that had read the file before the new key was in it may store one more value with an old key.
    time.sleep(SETTLE_S)
    count += _encrypt_anew(new.id)
    used = {
        keyring.key_id(bytes(sealed))
        for table, _ in TABLES
        for sealed in table.objects.values_list("sealed", flat=True)
    }
    keyring.replace([key for key in keyring.load().keys if key.id == new.id or key.id in used])
    audit.record(who, "secret.key_rotated", new.name, count=count)
    return count


def _encrypt_anew(key_id: bytes) -> int:
    count = 0
    for table, context_of in TABLES:
        for pk in table.objects.order_by("pk").values_list("pk", flat=True):
            with transaction.atomic():
                secret = table.objects.select_for_update().filter(pk=pk).first()
                if secret is None or keyring.key_id(bytes(secret.sealed)) == key_id:
                    continue
                keys, context = keyring.load(), context_of(secret)
                secret.sealed = keys.seal(keys.open(bytes(secret.sealed), context), context)
                secret.save(update_fields=["sealed"])
                count += 1
    return count
