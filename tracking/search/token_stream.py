"""A place in a filter's tokens: what stands there, what is read next, and the error that points at it.
Pure."""

from __future__ import annotations

from typing import NoReturn

from tracking.search.errors import FilterError
from tracking.search.tokens import Token, tokens
from tracking.search.tree import Key


class TokenStream:
    """`field`: what errors name, such as filter or order_by. Raises FilterError for text that has no
    tokens."""

    def __init__(self, text: str, field: str) -> None:
        self._text = text.replace("\x00", " ")
        self._field = field
        self._tokens = tokens(self._text, field)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    @property
    def opens(self) -> bool:
        """Whether a parenthesis follows on the next token."""
        return self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].text == "("

    def take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def word(self, *words: str) -> str:
        """The next token in capitals where it is one of `words`, which is then read; else nothing."""
        token = self.next
        if token.kind != "word" or token.text.upper() not in words:
            return ""
        return self.take().text.upper()

    def mark(self, mark: str) -> bool:
        """Whether the next token is this one, which is then read."""
        if self.next.kind != "mark" or self.next.text != mark:
            return False
        self.take()
        return True

    def operator(self, known: str, key: Key | None = None) -> str:
        """Any of the grammar's operators; `known` are those that would be right here."""
        if self.next.kind == "operator":
            return self._sign()
        if found := self.word("LIKE", "ILIKE", "IN"):
            return found
        if self.word("NOT"):
            return "NOT IN" if self.word("IN") else self.expected("IN")
        if not self.word("IS"):
            self.expected(known, "operator", key)
        if self.word("NOT"):
            return "IS NOT NULL" if self.word("NULL") else self.expected("NULL")
        return "IS NULL" if self.word("NULL") else self.expected("NULL or NOT NULL")

    def _sign(self) -> str:
        text = self.next.text
        if text in ("==", "<>"):
            self.refuse(f"Write {'=' if text == '==' else '!='} instead of {text}")
        return self.take().text

    def end(self, wanted: str, kind: str = "") -> None:
        if self.next.kind != "end":
            self.expected(f"{wanted}, or the end", kind)

    def expected(self, wanted: str, kind: str = "", key: Key | None = None) -> NoReturn:
        token = self.next
        found = (
            "it ends here"
            if token.kind == "end"
            else f"{self._text[token.at : token.at + 40].split()[0]!r} stands here"
        )
        raise FilterError(
            f"Expected {wanted}; {found}", token.at, self._text, self._field, wanted=kind, key=key
        )

    def refuse(self, message: str, at: int | None = None) -> NoReturn:
        raise FilterError(message, self.next.at if at is None else at, self._text, self._field)
