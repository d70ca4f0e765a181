"""Encrypts what the database must hold and a copy of it must not reveal, with a key made of SECRET_KEY."""

from __future__ import annotations

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

NONCE_BYTES = 12


class Unreadable(Exception):
    """The text was sealed with another SECRET_KEY, or for somebody else, or was changed."""


def seal(text: str, context: str) -> str:
    """Returns `text` encrypted. Only `unseal` with the same `context` returns it: a row that is copied to
    another person is unreadable."""
    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCM(_key()).encrypt(nonce, text.encode(), context.encode())
    return base64.urlsafe_b64encode(nonce + sealed).decode()


def unseal(sealed: str, context: str) -> str:
    """Returns the text of `seal`. Raises Unreadable."""
    raw = base64.urlsafe_b64decode(sealed)
    try:
        return AESGCM(_key()).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], context.encode()).decode()
    except InvalidTag as error:
        raise Unreadable from error


def _key() -> bytes:
    derivation = HKDF(hashes.SHA256(), 32, salt=None, info=b"trainhub second factors")
    return derivation.derive(settings.SECRET_KEY.encode())
