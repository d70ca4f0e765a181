from __future__ import annotations


class NotSent(Exception):
    """Why something did not go out, for whoever owns the channel. `is_away`: nothing else would have got
    there either;
    `is_gone`: it never will."""

    def __init__(self, message: str, *, is_away: bool = False, is_gone: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_away = is_away
        self.is_gone = is_gone
