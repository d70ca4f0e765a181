"""Errors for a password that cannot be checked at present."""

from __future__ import annotations


class AuthenticationDelayed(Exception):
    """The password was not compared with anything. The same request may succeed after `retry_after_s`
    seconds."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s


class TooManyAttempts(AuthenticationDelayed):
    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            f"Too many failed attempts. Wait {retry_after_s} seconds, then try again.", retry_after_s
        )


class HashingBusy(AuthenticationDelayed):
    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            f"Many people are signing in at this moment. Wait {retry_after_s} seconds, then try again.",
            retry_after_s,
        )
