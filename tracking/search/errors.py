from __future__ import annotations

from tracking.search.tree import Key


class FilterError(ValueError):
    """A filter or an order that cannot be read. `message` is a sentence; `position` counts the characters of
    `text` from 0.

    `wanted`: what would have been right there (key, operator, value, list, joint), where that is clear;
    `key`: of which key."""

    def __init__(
        self,
        message: str,
        position: int,
        text: str = "",
        field: str = "filter",
        *,
        wanted: str = "",
        key: Key | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.text = text
        self.field = field
        self.wanted = wanted
        self.key = key

    @property
    def sentence(self) -> str:
        """In one line, as problem details carry it."""
        return f"{self.message.removesuffix('.')} (at character {self.position + 1})."

    @property
    def pointer(self) -> str:
        """The line in question, and a caret under the character."""
        begin = self.text.rfind("\n", 0, self.position) + 1
        end = self.text.find("\n", self.position)
        line = self.text[begin:] if end < 0 else self.text[begin:end]
        return f"{line}\n{' ' * (self.position - begin)}^"

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.pointer}"
