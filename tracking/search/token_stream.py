"""A position in a filter's tokens, with errors that point at it. Pure."""

from __future__ import annotations

from typing import NoReturn

from tracking.search.errors import FilterError
from tracking.search.tokens import Token, tokenize
from tracking.search.tree import Key


class TokenStream:
    """The tokens of `text`; `field` is the name in errors, such as filter or order_by. Raises FilterError for
    text that cannot be tokenized."""

    def __init__(self, text: str, field: str) -> None:
        # PostgreSQL cannot store NUL in text. A space keeps the offsets in errors right.
        self._text = text.replace("\x00", " ")
        self._field = field
        self._tokens = tokenize(self._text, field)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    @property
    def is_call(self) -> bool:
        """Whether a parenthesis follows the next token."""
        return self._at + 1 < len(self._tokens) and self._tokens[self._at + 1].text == "("

    def take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def take_word(self, *words: str) -> str:
        """Consumes the next token if it is one of `words`, and returns it in capitals; else returns ""."""
        token = self.next
        if token.kind != "word" or token.text.upper() not in words:
            return ""
        return self.take().text.upper()

    def take_mark(self, mark: str) -> bool:
        """Consumes the next token if it is `mark`, and returns whether it was."""
        if self.next.kind != "mark" or self.next.text != mark:
            return False
        self.take()
        return True

    def take_operator(self, expected: str, key: Key | None = None) -> str:
        """Consumes and returns an operator; `expected` lists the valid ones for the error message."""
        if self.next.kind == "operator":
            return self._take_sign()
        if word := self.take_word("LIKE", "ILIKE", "IN"):
            return word
        if self.take_word("NOT"):
            return "NOT IN" if self.take_word("IN") else self.fail_expected("IN")
        if not self.take_word("IS"):
            self.fail_expected(expected, "operator", key)
        if self.take_word("NOT"):
            return "IS NOT NULL" if self.take_word("NULL") else self.fail_expected("NULL")
        return "IS NULL" if self.take_word("NULL") else self.fail_expected("NULL or NOT NULL")

    def _take_sign(self) -> str:
        text = self.next.text
        if text in ("==", "<>"):
            self.fail(f"Write {'=' if text == '==' else '!='} instead of {text}")
        return self.take().text

    def expect_end(self, expected: str, kind: str = "") -> None:
        if self.next.kind != "end":
            self.fail_expected(f"{expected}, or the end", kind)

    def fail_expected(self, expected: str, kind: str = "", key: Key | None = None) -> NoReturn:
        token = self.next
        position = (
            "it ends here"
            if token.kind == "end"
            else f"{self._text[token.at : token.at + 40].split()[0]!r} is here"
        )
        raise FilterError(
            f"Expected {expected}; {position}", token.at, self._text, self._field, expected=kind, key=key
        )

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        raise FilterError(message, self.next.at if at is None else at, self._text, self._field)
