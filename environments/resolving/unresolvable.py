"""Why a version cannot be locked."""

from __future__ import annotations


class Unresolvable(Exception):
    """A version cannot be locked; the message is a sentence for the person who made it."""
