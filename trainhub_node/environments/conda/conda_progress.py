"""Counts packages in the output of the conda installer while it grows."""

from __future__ import annotations


class CondaProgress:
    """The packages that the installer has named so far. `needed`: how many there are; `is_installing` is
    never set, because the installer itself says how far it is."""

    def __init__(self) -> None:
        self.needed: set[str] = set()
        self.is_installing = False
        self._sentence = ""
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the output."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-4096:]
        for line in lines:
            text = line.decode(errors="replace")
            if text.startswith("Downloaded ") and " and installed " in text:
                self._sentence = text

    def sentence(self) -> str:
        return self._sentence
