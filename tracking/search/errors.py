from __future__ import annotations

from tracking.search.tree import Key


class FilterError(ValueError):
    """A filter or order that cannot be parsed. `position` is the offset of the wrong character in `text`.

    `expected` says what belongs there, if that is clear: key, operator, value, list or joint; `key` is the
    key that an operator or value belongs to.
    """

    def __init__(
        self,
        message: str,
        position: int,
        text: str = "",
        field: str = "filter",
        *,
        expected: str = "",
        key: Key | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.text = text
        self.field = field
        self.expected = expected
        self.key = key

    @property
    def sentence(self) -> str:
        """The message with the position, in one line."""
        return f"{self.message.removesuffix('.')} (at character {self.position + 1})."

    @property
    def pointer(self) -> str:
        """The wrong line with a caret below the character."""
        begin = self.text.rfind("\n", 0, self.position) + 1
        end = self.text.find("\n", self.position)
        line = self.text[begin:] if end < 0 else self.text[begin:end]
        return f"{line}\n{' ' * (self.position - begin)}^"

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.pointer}"
