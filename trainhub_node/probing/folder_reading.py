"""What a process of the account of runs does in a folder: reads its first files, or names all of them."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from trainhub_launch.data.file_names import is_file_name
from trainhub_launch.data.store_test import EMPTY, MAX_FILES, PIECE_BYTES, measure
from trainhub_node.data.input_folders import account_words

Say = Callable[[Mapping[str, object]], None]

BATCH = 500
# The other side takes a longer silence for a file server that is gone.
SAY_S = 1.0


class Unlistable(Exception):
    """What is wrong with the folder, as it follows its path."""


def read(root: str, say: Say) -> None:
    """Says how many files and bytes it has read, and how fast."""
    try:
        entries = walked_files(root, lambda _: None) if os.path.isdir(root) else iter([("", 0, 0)])
        names = [name for name, _, _ in islice(entries, MAX_FILES)]
        if names:
            say({"done": measure(names, lambda name: _pieces(f"{root}/{name}" if name else root))})
        else:
            say({"done": {"files": 0, "bytes": 0, "seconds": 0.0, "note": EMPTY}})
    except Unlistable as error:
        say({"problem": str(error)})
    except OSError as error:
        say({"problem": _problem(root, error)})


def walk(root: str, say: Say) -> None:
    """Says all files of the folder as [path, size, time of change in nanoseconds], and the links that are
    none of them; or that it is one file alone."""
    try:
        facts = os.stat(root)
        if not stat.S_ISDIR(facts.st_mode):
            name = os.path.basename(root)
            say({"files": [[name, facts.st_size, facts.st_mtime_ns]], "is_file": True})
            return
        batch = _Batch(say)
        links: list[str] = []
        for entry in walked_files(root, links.append, batch.tick):
            batch.add(entry)
            if len(links) >= BATCH:
                say({"links": links})
                links.clear()
        batch.flush()
        say({"links": links})
    except Unlistable as error:
        say({"problem": str(error)})
    except OSError as error:
        say({"problem": _problem(root, error)})


class _Batch:
    """Says files together, and nothing at all if there are none for a while."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._files: list[tuple[str, int, int]] = []
        self._said_at = time.monotonic()

    def add(self, file: tuple[str, int, int]) -> None:
        self._files.append(file)
        if len(self._files) >= BATCH:
            self.flush()

    def tick(self) -> None:
        if time.monotonic() - self._said_at > SAY_S:
            self.flush()

    def flush(self) -> None:
        self._say({"files": self._files})
        self._files, self._said_at = [], time.monotonic()


def walked_files(
    root: str, on_link: Callable[[str], None], on_folder: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, int, int]]:
    """Yields path, size and time of change of each file below the folder. Links to files inside of it count
    as files; `on_link` gets the others, which are not followed, so that no loop holds it. Raises Unlistable,
    and OSError."""
    real = os.path.realpath(root)
    folders = [""]
    while folders:
        below = folders.pop()
        on_folder()
        with os.scandir(f"{root}/{below}") as entries:
            for entry in entries:
                path = f"{below}{entry.name}"
                _check_name(path)
                if entry.is_symlink():
                    facts = _target(entry, real)
                    if facts is None:
                        on_link(path)
                        continue
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                    continue
                else:
                    try:
                        facts = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # it has just been removed
                    if not stat.S_ISREG(facts.st_mode):
                        raise Unlistable(
                            f"has {path!r:.300}, which is no file but a device, pipe or socket: remove it, "
                            "or name a folder without it"
                        )
                yield path, facts.st_size, facts.st_mtime_ns


def _target(entry: os.DirEntry[str], real: str) -> os.stat_result | None:
    """Returns the file to which a link leads, if that lies in the folder `real`."""
    try:
        facts = entry.stat()
    except OSError:
        return None
    is_inside = os.path.realpath(entry.path).startswith(f"{real.rstrip('/')}/")
    return facts if is_inside and stat.S_ISREG(facts.st_mode) else None


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise Unlistable(
            f"has {os.fsencode(path)!r:.300}, whose name is not UTF-8: rename it, or name a folder without it"
        ) from error
    if not is_file_name(path):
        raise Unlistable(f"has {path!r:.300}, whose name is too long: rename it, or name a folder without it")


def _pieces(path: str) -> Iterator[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        # What this machine still has in memory says nothing about the file server.
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        while piece := os.read(descriptor, PIECE_BYTES):
            yield piece
    finally:
        os.close(descriptor)


def _problem(root: str, error: OSError) -> str:
    path = str(error.filename or root).removeprefix(root).strip("/")
    what = f"has {path!r:.300}, which" if path else "has something that"
    if isinstance(error, PermissionError):
        return f"{what} cannot be read by the account of runs ({account_words()})"
    return f"{what} cannot be read ({error.strerror or error})"
