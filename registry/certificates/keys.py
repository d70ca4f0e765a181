"""The Ed25519 key with which this installation signs certificates. It is made on first use in DATA_DIR/keys,
and the public key of each signing key stays in DATA_DIR/keys/public.

Whoever can read the private file can sign as this TrainHub. The key is not derived from SECRET_KEY, which may
be changed at any time.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from django.conf import settings

from registry.errors import RegistryError
from registry.verifying.trainhub_verify import fingerprint
from workspaces.secrets.private_keys import make_private_key, new_private_key, write_private_file

PRIVATE, PUBLIC = "model-signing.pem", "public"


@dataclass(frozen=True)
class PublicKey:
    """A public key of this installation. `is_current`: it signs now; otherwise it signed earlier. `since`:
    when it was stored."""

    fingerprint: str
    pem: str
    since: datetime
    is_current: bool


@dataclass(frozen=True)
class SigningKey:
    private: Ed25519PrivateKey

    @property
    def public(self) -> Ed25519PublicKey:
        return self.private.public_key()

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.public)

    @property
    def pem(self) -> str:
        return self.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign(self, data: bytes) -> bytes:
        return self.private.sign(data)


def current() -> SigningKey:
    """Returns the key that signs now, and makes one if there is none. Raises RegistryError if its file is
    damaged or cannot be read."""
    path = _folder() / PRIVATE
    if not path.exists():
        make_private_key(path)
    try:
        private = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise RegistryError("certificate", _damaged(path)) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise RegistryError("certificate", _damaged(path))
    return _published(SigningKey(private))


def public_keys() -> list[PublicKey]:
    """Returns all public keys of this installation: first the one that signs now, then the newest first."""
    now = current().fingerprint
    files = sorted(
        (_folder() / PUBLIC).glob("*.pem"), key=lambda file: (file.stem != now, -file.stat().st_mtime)
    )
    return [PublicKey(file.stem, file.read_text(), _written_at(file), file.stem == now) for file in files]


def public_pem(fingerprint: str) -> str:
    """Returns the public key with that fingerprint as PEM. Raises RegistryError if this installation no
    longer has it."""
    try:
        return (_folder() / PUBLIC / f"{fingerprint}.pem").read_text()
    except OSError as error:
        raise RegistryError(
            "certificate", f"{_folder() / PUBLIC} lacks the key {fingerprint}; restore it from a backup"
        ) from error


def rotate() -> SigningKey:
    """Replaces the signing key by a new one and returns that. Earlier signatures stay valid, because the old
    public key stays."""
    # Stores the old key's public half if it is missing: the next line replaces the file that it is derived
    # from.
    current()
    new_private_key(_folder()).replace(_folder() / PRIVATE)
    return current()


def _published(key: SigningKey) -> SigningKey:
    """Stores the public half of `key` among the public keys if it is missing there, and returns `key`."""
    path = _folder() / PUBLIC / f"{key.fingerprint}.pem"
    if not path.exists():
        write_private_file(path.with_name(f".{secrets.token_hex(8)}"), key.pem.encode()).replace(path)
    return key


def _written_at(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "keys"


def _damaged(path: Path) -> str:
    return (
        f"{path}, the key that signs models, cannot be read; restore it from a backup, or remove it for "
        "a new one"
    )
