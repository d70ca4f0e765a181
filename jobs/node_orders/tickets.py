"""The ticket with which a node uploads the result of one order. It is derived from the secret key, so that
none is stored, and ends with the order."""

from __future__ import annotations

import base64
import hashlib
import hmac

from django.conf import settings

PREFIX = "thu_"


def upload_ticket(order_id: str) -> str:
    key = hashlib.sha256(b"trainhub build upload ticket\0" + settings.SECRET_KEY.encode()).digest()
    mac = hmac.new(key, order_id.encode(), hashlib.sha256).digest()
    return PREFIX + base64.urlsafe_b64encode(mac).decode().rstrip("=")


def has_ticket_of(header: str, order_id: str) -> bool:
    """Returns whether a header Authorization has the ticket of the order."""
    scheme, _, ticket = header.partition(" ")
    if scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(ticket.strip().encode(), upload_ticket(order_id).encode())
