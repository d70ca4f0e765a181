from __future__ import annotations


class RegistryError(Exception):
    """A registry does not give what the hub needs of it; the message is a sentence with the remedy."""
