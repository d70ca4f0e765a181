from __future__ import annotations


class ServiceAccountError(Exception):
    """A service account or its token cannot be made or changed as requested; `field` is what has to be
    different, and `message` says how, in words that follow its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
