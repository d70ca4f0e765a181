"""Claim codes: what the script of an allocation carries instead of a credential.

A code is derived from the allocation and the secret key, so that no secret is stored. It is useless by
itself: it counts only while Slurm reports the job running for the allocation's account, and once for each of
its nodes and starts."""

from __future__ import annotations

import base64
import hashlib
import hmac

from django.conf import settings

PREFIX = "tha_"


def claim_code(allocation_id: int) -> str:
    return f"{PREFIX}{allocation_id}_{_mac(allocation_id)}"


def allocation_id_of(code: str) -> int | None:
    """Returns the allocation to which the code belongs, None if the hub has not made it."""
    number, _, mac = code.removeprefix(PREFIX).partition("_")
    if not code.startswith(PREFIX) or not number.isdecimal() or len(number) > 18:
        return None
    return int(number) if hmac.compare_digest(mac.encode(), _mac(int(number)).encode()) else None


def _mac(allocation_id: int) -> str:
    key = hashlib.sha256(b"trainhub allocation\0" + settings.SECRET_KEY.encode()).digest()
    mac = hmac.new(key, str(allocation_id).encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).decode().rstrip("=")
