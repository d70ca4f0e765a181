"""Reads from uv's output which packages it downloads, and when it installs them."""

from __future__ import annotations

# A line of uv's is shorter; a longer one is no line of interest.
MAX_LINE_BYTES = 65536
MAX_NAMES = 3


class UvProgress:
    """`needed`: the names of all packages of the lock; `is_installing`: everything is there and uv installs
    it."""

    def __init__(self, needed: set[str]) -> None:
        self.needed = needed
        self.is_installing = False
        self._downloading: dict[str, str] = {}
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the output."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-MAX_LINE_BYTES:]
        for line in lines:
            self._read(line.decode(errors="replace").split())

    def sentence(self) -> str:
        """Returns how far uv is. It names only the larger packages that it downloads."""
        if not self._downloading:
            return f"Downloading {len(self.needed)} packages."
        names = [f"{name} {size}" for name, size in self._downloading.items()]
        further = len(names) - MAX_NAMES
        return f"Downloading {', '.join(names[:MAX_NAMES])}{f' and {further} more' if further > 0 else ''}."

    def _read(self, words: list[str]) -> None:
        match words:
            case ["Downloading", name, size]:
                self._downloading[name] = size
            case ["Downloaded", name]:
                self._downloading.pop(name, None)
            case ["Prepared", *_]:
                self.is_installing = True
