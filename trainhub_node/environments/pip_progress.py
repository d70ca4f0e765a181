"""Counts packages in pip's output while it grows: how many it needs, and how many it has.

From an index that serves metadata apart, pip first collects that of every package and then downloads the
packages, so the total is known when the first of them arrives. From others it downloads each package to
learn what that one needs. Standard library only: `make` shows the same progress."""

from __future__ import annotations

WHEEL = ".whl"
# A line of pip's is shorter; a longer one is no line of interest.
MAX_LINE_BYTES = 65536


class PipProgress:
    """The packages that pip has named in its output so far. `needed` and `fetched` are normalised names;
    `is_growing`: pip downloads packages to find what else it needs, so that the total is not known yet;
    `is_installing`: everything is there and pip installs it."""

    def __init__(self) -> None:
        self.needed: set[str] = set()
        self.fetched: set[str] = set()
        self.is_growing = False
        self.is_installing = False
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the output."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-MAX_LINE_BYTES:]
        for line in lines:
            self._read(line.decode(errors="replace").split())

    def sentence(self) -> str:
        """Returns how far pip is, "" before it has named a package."""
        if self.is_installing:
            return f"Installing {_packages(len(self.needed))}."
        if self.is_growing:
            return f"Downloaded {_packages(len(self.fetched))} so far."
        if self.fetched:
            return f"Downloaded {len(self.fetched)} of {_packages(len(self.needed))}."
        return (
            f"Finding the versions to download: {_packages(len(self.needed))} so far." if self.needed else ""
        )

    def _read(self, words: list[str]) -> None:
        match words:
            case ["Collecting", requirement, *_]:
                self.is_growing = bool(self.fetched)
                self.needed.add(_project(requirement))
            # A file of a folder or an index on this machine is not downloaded.
            case ["Processing", path, *_] if path.endswith(WHEEL):
                self._fetch(path)
            case ["Downloading" | "Using", *rest]:
                for word in rest[:2]:
                    if word.endswith(WHEEL):
                        self._fetch(word)
            case ["Installing", "collected", "packages:", *_]:
                self.is_installing = True

    def _fetch(self, path: str) -> None:
        name = _normalised(path.rpartition("/")[2].partition("-")[0])
        self.needed.add(name)
        self.fetched.add(name)


def _project(requirement: str) -> str:
    """Returns the name in `name[extra]>=1,<2`."""
    end = next((at for at, char in enumerate(requirement) if not (char.isalnum() or char in "-_.")), None)
    return _normalised(requirement[:end])


def _normalised(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _packages(count: int) -> str:
    return f"{count} package{'' if count == 1 else 's'}"
