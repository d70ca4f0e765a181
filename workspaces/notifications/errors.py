from __future__ import annotations


class NotSent(Exception):
    """A message was not sent; the text is for the owner of the channel. `is_away`: the receiver was not
    reached, so further messages would fail, too. `is_permanent`: the receiver will never accept any."""

    def __init__(self, message: str, *, is_away: bool = False, is_permanent: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_away = is_away
        self.is_permanent = is_permanent
