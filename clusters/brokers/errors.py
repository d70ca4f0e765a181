from __future__ import annotations


class BrokerUnavailable(Exception):
    """The broker does not answer at the moment; a later try may succeed."""


class BrokerPermissionError(Exception):
    """The hub may not create broker users; the message says which permissions it needs."""
