from __future__ import annotations


class MailError(Exception):
    """An address or an invitation cannot be as requested; `field` is what has to be different, and `message`
    says how, in words that follow its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
