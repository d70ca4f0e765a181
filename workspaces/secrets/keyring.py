"""The keys with which secrets are encrypted: a file outside the database, and outside the folder of a backup.

Each line is a key: its id and 32 random bytes in base64. New values are encrypted with the first one; the
others still decrypt, until `manage.py secrets rotate` has encrypted everything anew."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from workspaces.secrets.errors import SecretsUnavailable

KEY_BYTES = 32
ID_BYTES = 4
NONCE_BYTES = 12
# The first byte of what is stored. Another one means that a newer version wrote it.
FORMAT = 1
HEAD = """\
# The keys of TrainHub's secrets. Without this file no stored secret can be read.
# Keep a copy of it apart from the backup of the data folder: together they are the secrets in plain text.
"""


@dataclass(frozen=True)
class Key:
    """One key. `id`: 4 bytes that stand before each value encrypted with it."""

    id: bytes
    key: bytes

    @property
    def name(self) -> str:
        return self.id.hex()


@dataclass(frozen=True)
class Keyring:
    """The keys of this installation, the one for new values first."""

    keys: tuple[Key, ...]

    def seal(self, value: str, context: str) -> bytes:
        """Returns the encrypted value. It can be decrypted only with the same `context`, so that a row copied
        to another place is of no use there."""
        key, nonce = self.keys[0], secrets.token_bytes(NONCE_BYTES)
        head = bytes([FORMAT]) + key.id + nonce
        return head + AESGCM(key.key).encrypt(nonce, value.encode(), context.encode())

    def open(self, sealed: bytes, context: str) -> str:
        """Returns the decrypted value. Raises SecretsUnavailable for an unknown key, a changed value, or
        another context."""
        start = 1 + ID_BYTES
        if sealed[:1] != bytes([FORMAT]):
            raise SecretsUnavailable("a newer version of TrainHub encrypted this secret")
        key = next((key for key in self.keys if key.id == sealed[1:start]), None)
        if key is None:
            raise SecretsUnavailable(
                f"the key {sealed[1:start].hex()}, with which this secret was encrypted, is not in "
                f"{settings.SECRETS_KEYRING}; restore that file, or type the secret again"
            )
        nonce, content = sealed[start : start + NONCE_BYTES], sealed[start + NONCE_BYTES :]
        try:
            return AESGCM(key.key).decrypt(nonce, content, context.encode()).decode()
        except (InvalidTag, ValueError) as error:
            raise SecretsUnavailable(
                "this secret was changed, or copied from another place, in the database; type it again"
            ) from error


def key_id(sealed: bytes) -> bytes:
    return sealed[1 : 1 + ID_BYTES]


def load() -> Keyring:
    """Returns the keys of this installation. Raises SecretsUnavailable if the file cannot be read.

    It is read each time: a rotation in another process takes effect at once."""
    file = path()
    try:
        return _parse(file, file.read_text())
    except FileNotFoundError as error:
        raise SecretsUnavailable(
            f"the keys of the secrets, SECRETS_KEYRING={file}, are missing; restore that file, or, "
            "if it is lost, run `manage.py secrets new-keyring` and type the secrets again"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SecretsUnavailable(
            f"SECRETS_KEYRING={file} cannot be read: {getattr(error, 'strerror', '') or 'it is no text'}"
        ) from error


def path() -> Path:
    return Path(settings.SECRETS_KEYRING)


def exists() -> bool:
    """Whether there is such a file. One in a closed folder counts: `load` says what is wrong with it."""
    try:
        return path().exists()
    except PermissionError:
        return True


def create() -> None:
    """Makes the file with a first key, unless there is one. Raises SecretsUnavailable."""
    file = path()
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        aside = _write_aside(file, [new_key()])
        try:
            # Not a rename: of two processes that come at the same moment, one makes the file.
            os.link(aside, file)
        except FileExistsError:
            return
        finally:
            aside.unlink()
    except OSError as error:
        raise SecretsUnavailable(
            f"SECRETS_KEYRING={file} cannot be made: {error.strerror}; set it to a file in a folder "
            "that this account may write"
        ) from error


def replace(keys: Sequence[Key]) -> None:
    """Writes these keys, the one for new values first. The file is replaced as a whole or not at all. Raises
    SecretsUnavailable."""
    file = path()
    try:
        _write_aside(file, keys).replace(file)
    except OSError as error:
        raise SecretsUnavailable(f"SECRETS_KEYRING={file} cannot be written: {error.strerror}") from error


def _write_aside(file: Path, keys: Sequence[Key]) -> Path:
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as text:  # noqa: PTH123
        text.write(HEAD + "".join(f"{key.name} {base64.b64encode(key.key).decode()}\n" for key in keys))
        text.flush()
        # Values are encrypted with a new key right afterwards: it must not be lost with the power.
        os.fsync(text.fileno())
    return aside


def new_key() -> Key:
    return Key(secrets.token_bytes(ID_BYTES), secrets.token_bytes(KEY_BYTES))


def _parse(file: Path, text: str) -> Keyring:
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            name, encoded = line.split()
            key = Key(bytes.fromhex(name), base64.b64decode(encoded, validate=True))
        except (ValueError, binascii.Error) as error:
            raise SecretsUnavailable(f"SECRETS_KEYRING={file} is damaged in line {number}") from error
        if len(key.id) != ID_BYTES or len(key.key) != KEY_BYTES:
            raise SecretsUnavailable(f"SECRETS_KEYRING={file} is damaged in line {number}")
        keys.append(key)
    if not keys:
        raise SecretsUnavailable(f"SECRETS_KEYRING={file} holds no key; restore it, or remove the empty file")
    return Keyring(tuple(keys))
