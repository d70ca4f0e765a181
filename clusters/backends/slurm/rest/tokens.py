"""Slurm's tokens (JWT), as `scontrol token` prints them: whose they are, and until when they hold."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clusters.backends.slurm.settings import USER

MAX_TOKEN = 4000
PREFIX = "SLURM_JWT="
# As what the account is called in a token: by scontrol, and by others that sign tokens for Slurm.
_ACCOUNT_CLAIMS = ("sun", "username")
_WEEK_S = 7 * 24 * 3600
COMMAND = f"scontrol token lifespan={_WEEK_S}"


class SlurmTokenRefused(ValueError):
    """The text cannot be a token; the message is a sentence for whoever entered it."""


@dataclass(frozen=True)
class TokenClaims:
    """`value` is the token alone. Nobody but Slurm can check its signature."""

    value: str = field(repr=False)
    account: str
    expires_at: datetime


def parse_token(text: str) -> TokenClaims:
    """Reads a token, alone or in the line `SLURM_JWT=…`. Raises SlurmTokenRefused."""
    value = text.strip().removeprefix(PREFIX)
    parts = value.split(".")
    if len(value) > MAX_TOKEN or len(parts) != 3 or not value.isascii() or not value.isprintable():
        raise SlurmTokenRefused(f"This is no token. Enter the line that this command prints: {COMMAND}")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        account = next(str(claims[name]) for name in _ACCOUNT_CLAIMS if name in claims)
        expires_at = datetime.fromtimestamp(int(claims["exp"]), UTC)
    except StopIteration:
        raise SlurmTokenRefused(
            "The token does not say whose it is (sun); make one with scontrol token."
        ) from None
    except KeyError:
        raise SlurmTokenRefused(
            "The token does not say when it ends (exp); one that never ends is not taken."
        ) from None
    except (ValueError, TypeError, OverflowError, OSError):
        raise SlurmTokenRefused(
            f"This is no token. Enter the line that this command prints: {COMMAND}"
        ) from None
    if account == "root":
        raise SlurmTokenRefused(
            "This is a token of root. Nothing is done as root: make it as a plain account."
        )
    if not USER.fullmatch(account):
        raise SlurmTokenRefused(f"The token is of {account[:40]!r}, which cannot be a Unix account.")
    return TokenClaims(value, account, expires_at)
