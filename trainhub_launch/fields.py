"""Reading untrusted JSON into typed values, every refusal naming its field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainhub_launch.errors import SpecError

MAX_WORD_BYTES = 120_000
"""Linux starts no process with an argument or variable above 128 KiB; room is left for its name."""


def check_text(path: str, text: str) -> None:
    """Refuses what no process can be given as an argument or a variable."""
    if "\x00" in text:
        raise SpecError(path, "must not contain a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise SpecError(path, "is not valid Unicode (half of a surrogate pair)") from None
    if size > MAX_WORD_BYTES:
        raise SpecError(
            path,
            f"is {size} bytes long; a process can be given at most {MAX_WORD_BYTES} (put it into a file)",
        )


class Fields:
    """One JSON object being read; `finish()` refuses whatever was not asked for."""

    def __init__(self, data: Any, path: str = "") -> None:
        if not isinstance(data, Mapping):
            raise SpecError(path or "spec", "must be a JSON object")
        self._data = data
        self._path = path
        self._asked: set[str] = set()

    def path(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def raw(self, name: str, default: Any = None) -> Any:
        self._asked.add(name)
        return self._data.get(name, default)

    def text(
        self, name: str, default: str = "", *, required: bool = False, longest: int = MAX_WORD_BYTES
    ) -> str:
        value = self.raw(name, default)
        if not isinstance(value, str):
            raise SpecError(self.path(name), "must be a string")
        check_text(self.path(name), value)
        if len(value) > longest:
            raise SpecError(self.path(name), f"is {len(value)} characters long; at most {longest} are kept")
        if required and not value.strip():
            raise SpecError(self.path(name), "is required")
        return value

    def integer(self, name: str, default: int, *, least: int, most: int) -> int:
        value = self.optional_integer(name, least=least, most=most)
        return default if value is None else value

    def optional_integer(self, name: str, *, least: int, most: int) -> int | None:
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise SpecError(self.path(name), "must be a whole number")
        if not least <= value <= most:
            raise SpecError(self.path(name), f"must be between {least} and {most}, not {value}")
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        """A list of strings; numbers are accepted too, as in `['--epochs', 50]`."""
        value = self.raw(name, ())
        if not isinstance(value, list | tuple):
            raise SpecError(self.path(name), "must be a list, one item per argument (never a shell line)")
        out: list[str] = []
        for index, item in enumerate(value):
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise SpecError(f"{self.path(name)}[{index}]", "must be a string or a number")
            text = str(item)
            check_text(f"{self.path(name)}[{index}]", text)
            out.append(text)
        return tuple(out)

    def nested(self, name: str) -> Fields:
        return Fields(self.raw(name, {}), self.path(name))

    def finish(self) -> None:
        unknown = sorted(str(key) for key in self._data if key not in self._asked)
        if unknown:
            known = ", ".join(sorted(self._asked))
            raise SpecError(self.path(unknown[0]), f"is not a known field; known here: {known}")
