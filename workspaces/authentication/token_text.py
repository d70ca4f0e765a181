"""The text of tokens, links and codes: random, and stored only as its SHA-256."""

from __future__ import annotations

import hashlib
import secrets


def new_token(prefix: str) -> str:
    """Returns a new token of 32 random bytes. Its prefix shows people (and secret scanners) what it is."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def digest(text: str) -> str:
    """Returns the form in which a token is stored. A plain hash is enough because tokens are random, not
    chosen."""
    return hashlib.sha256(text.encode()).hexdigest()
