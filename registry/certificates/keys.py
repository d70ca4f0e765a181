"""This installation's Ed25519 key: made on first use, kept below DATA_DIR/keys; every public key that ever
signed stays there.

Whoever can read the private file can sign as this TrainHub. It is not derived from SECRET_KEY: that one may
change any day."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from django.conf import settings

from registry.errors import RegistryError
from registry.verifying.trainhub_verify import fingerprint

PRIVATE, PUBLIC = "model-signing.pem", "public"


@dataclass(frozen=True)
class PublicKey:
    """`is_current`: signs now; the others have signed before."""

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
    """The key that signs; raises RegistryError where its file is damaged or cannot be read."""
    path = _folder() / PRIVATE
    if not path.exists():
        _make(path)
    try:
        private = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise RegistryError("certificate", _damaged(path)) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise RegistryError("certificate", _damaged(path))
    return _published(SigningKey(private))


def known() -> list[PublicKey]:
    """Every key of this installation, the one that signs first."""
    now = current().fingerprint
    files = sorted(
        (_folder() / PUBLIC).glob("*.pem"), key=lambda file: (file.stem != now, -file.stat().st_mtime)
    )
    return [PublicKey(file.stem, file.read_text(), _written_at(file), file.stem == now) for file in files]


def public_pem(wanted: str) -> str:
    """The public key with that fingerprint; raises RegistryError where this installation no longer has it."""
    try:
        return (_folder() / PUBLIC / f"{wanted}.pem").read_text()
    except OSError as error:
        raise RegistryError(
            "certificate", f"{_folder() / PUBLIC} lacks the key {wanted}; restore it from a backup"
        ) from error


def rotate() -> SigningKey:
    """Sign with a new key from now on. What the old one has signed stays valid: its public key stays."""
    current()
    _new(_folder()).replace(_folder() / PRIVATE)
    return current()


def _make(path: Path) -> None:
    """Several processes may come here at once: one file wins, for all of them."""
    made = _new(path.parent)
    try:
        os.link(made, path)
    except FileExistsError:
        pass
    finally:
        made.unlink()


def _new(folder: Path) -> Path:
    private = Ed25519PrivateKey.generate()
    return _written(
        folder / f".{secrets.token_hex(8)}",
        private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _published(key: SigningKey) -> SigningKey:
    """`key`, its public half lying where those lie that are known."""
    path = _folder() / PUBLIC / f"{key.fingerprint}.pem"
    if not path.exists():
        _written(path.with_name(f".{secrets.token_hex(8)}"), key.pem.encode()).replace(path)
    return key


def _written(path: Path, data: bytes) -> Path:
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return path


def _written_at(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "keys"


def _damaged(path: Path) -> str:
    return (
        f"{path}, the key that signs models, cannot be read; restore it from a backup, or remove it for "
        "a new one"
    )
