from __future__ import annotations


class SecretError(Exception):
    """A secret cannot be stored as requested. `field` is the name of the field that it concerns."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class SecretsUnavailable(Exception):
    """The keys cannot be used, or a stored value cannot be decrypted. The message is a phrase with the
    remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
