"""Reads untrusted JSON into typed values. Every error names its field."""

from __future__ import annotations

from collections.abc import Mapping

from trainhub_launch.errors import SpecError

# Linux starts no process with an argument or variable above 128 KiB; room is left for its name.
MAX_WORD_BYTES = 120_000


def check_text(path: str, text: str) -> None:
    """Raises SpecError for a text that cannot be an argument or an environment variable of a process. `path`
    is the JSON path."""
    if "\x00" in text:
        raise SpecError(path, "must not contain a NUL character")
    try:
        size = len(text.encode())
    # JSON may contain an escaped half of a surrogate pair. Python's decoder accepts it, but no UTF-8 can hold
    # it.
    except UnicodeEncodeError:
        raise SpecError(path, "is not valid Unicode (half of a surrogate pair)") from None
    if size > MAX_WORD_BYTES:
        raise SpecError(
            path,
            f"is {size} bytes long; a process can be given at most {MAX_WORD_BYTES} (put it into a file)",
        )


class Fields:
    """Reads one JSON object, field by field. `finish()` raises SpecError if the object has a field that was
    not read."""

    def __init__(self, data: object, path: str = "") -> None:
        if not isinstance(data, Mapping):
            raise SpecError(path or "spec", "must be a JSON object")
        self._data = data
        self._path = path
        self._names: set[str] = set()

    def path(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def raw(self, name: str, default: object = None) -> object:
        # Optional fields are recorded even if the object lacks them, so that `finish` can list every name it
        # knows.
        self._names.add(name)
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
        # `bool` is a subclass of `int`: without this check `true` would be read as 1.
        if isinstance(value, bool) or not isinstance(value, int):
            raise SpecError(self.path(name), "must be a whole number")
        if not least <= value <= most:
            raise SpecError(self.path(name), f"must be between {least} and {most}, not {value}")
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        """Returns a list of strings as a tuple. Numbers are converted to text, as in `['--epochs', 50]`."""
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
        unknown = sorted(str(key) for key in self._data if key not in self._names)
        if unknown:
            names = ", ".join(sorted(self._names))
            raise SpecError(self.path(unknown[0]), f"is not a known field; known fields: {names}")
