from __future__ import annotations


class BrokerUnavailable(Exception):
    """The broker gives no answer now; another try may."""


class NotAllowed(Exception):
    """The hub may not make users there; the message says what to grant."""
