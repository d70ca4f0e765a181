"""Replaces the key of all secrets."""

from __future__ import annotations

import time

from django.db import transaction

from workspaces import audit
from workspaces.models import Secret
from workspaces.secrets import keyring, store
from workspaces.secrets.errors import SecretsUnavailable

# How long a request may take between reading the keys and storing what it encrypted with them.
SETTLE_S = 2.0


def rotate(who: str) -> int:
    """Encrypts every secret with a new key, and removes the old keys. Returns the number of secrets. Raises
    SecretsUnavailable, with all keys kept, if one cannot be decrypted.

    It can be interrupted at any moment, and called again: a key is removed only when no secret needs it."""
    old = keyring.load()
    broken = store.unreadable(Secret.objects.order_by("pk"))
    if broken:
        names = ", ".join(sorted({secret.name for secret, _ in broken}))
        raise SecretsUnavailable(
            f"{len(broken)} of the secrets cannot be decrypted ({names}); `manage.py secrets check` says why"
        )
    new = keyring.new_key()
    keyring.replace([new, *old.keys])
    count = _encrypt_anew(new.id)
    # Requests that had read the file before the new key was in it may store one more value with an old key.
    time.sleep(SETTLE_S)
    count += _encrypt_anew(new.id)
    used = {keyring.key_id(bytes(sealed)) for sealed in Secret.objects.values_list("sealed", flat=True)}
    keyring.replace([key for key in keyring.load().keys if key.id == new.id or key.id in used])
    audit.record(who, "secret.key_rotated", new.name, count=count)
    return count


def _encrypt_anew(key_id: bytes) -> int:
    count = 0
    for pk in Secret.objects.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            secret = Secret.objects.select_for_update().filter(pk=pk).first()
            if secret is None or keyring.key_id(bytes(secret.sealed)) == key_id:
                continue
            keys, context = keyring.load(), store.context(secret)
            secret.sealed = keys.seal(keys.open(bytes(secret.sealed), context), context)
            secret.save(update_fields=["sealed"])
            count += 1
    return count
