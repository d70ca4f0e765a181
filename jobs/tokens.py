"""The token of an attempt.

It is derived from the run and the secret key: a repeated claim gets the same token, and no secret is stored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from django.conf import settings

PREFIX = "thr_"


def attempt_token(run_id: str, attempt: int) -> str:
    key = hashlib.sha256(b"trainhub run token\0" + settings.SECRET_KEY.encode()).digest()
    mac = hmac.new(key, f"{run_id}/{attempt}".encode(), hashlib.sha256).digest()
    return PREFIX + base64.urlsafe_b64encode(mac).decode().rstrip("=")
