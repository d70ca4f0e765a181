"""Reads the first files of a store for a few seconds: whether that works, and how fast.

The hub and nodes do so with obstore, which this package does not import."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from trainhub_launch.data.file_names import nothing_there
from trainhub_launch.data.store_errors import subject
from trainhub_launch.data.store_listing import Facts
from trainhub_launch.data.stores import HTTP, Store
from trainhub_launch.json_types import JsonValue

# A test ends with whichever comes first.
MAX_BYTES, MAX_S = 64 * 2**20, 5.0
PIECE_BYTES = 2**20
# So many files are looked at, and so many are read at once.
MAX_FILES, READERS = 1000, 8
# A whole test of one machine ends after this.
TEST_TIMEOUT_S = 120.0
# For open_store: what is wrong is to be said soon.
HASTY_OPTIONS = {
    "connect_timeout": "10s",
    "read_timeout": "20s",
    "retry_config": {"max_retries": 2, "retry_timeout": timedelta(seconds=20)},
}
EMPTY = "It is empty."
NO_INDEX = (
    "The server answers, but there is nothing to read at the address itself, which is usual for a folder: "
    "test it with the path of a file."
)


class NothingThere(Exception):
    """There is nothing at the path; the message is a sentence."""


class StoreReading:
    """Reads the first files of `store` at `path`. `head` and `chunks`: obstore's functions `head` and `list`
    for it; `pieces`: the bytes of a file, by its key."""

    def __init__(
        self,
        store: Store,
        path: str,
        *,
        head: Callable[[str], Facts],
        chunks: Iterable[Sequence[Facts]],
        pieces: Callable[[str], Iterable[object]],
    ) -> None:
        self._store = store
        self._path = path
        self._head = head
        self._chunks = chunks
        self._pieces = pieces

    def run(self) -> dict[str, JsonValue]:
        """Returns how many files were read, how many bytes, and in how long; with a note, if there is
        something to say. Raises NothingThere, and the errors of obstore."""
        if self._store.kind == HTTP:
            return self._read_page()
        keys = self._keys()
        if not keys and self._path:
            raise NothingThere(nothing_there(subject(self._store), self._path))
        if not keys:
            return {"files": 0, "bytes": 0, "seconds": 0.0, "note": EMPTY}
        return measure(keys, self._pieces)

    def _read_page(self) -> dict[str, JsonValue]:
        try:
            return measure([self._path], self._pieces)
        except FileNotFoundError:
            if self._path:
                raise
            return {"files": 0, "bytes": 0, "seconds": 0.0, "note": NO_INDEX}

    def _keys(self) -> list[str]:
        if self._path:
            try:
                if self._head(self._path)["size"]:
                    return [self._path]
            except FileNotFoundError:
                pass  # it is a folder, whose files are listed
        for chunk in self._chunks:
            return [facts["path"] for facts in chunk if facts["size"]][:MAX_FILES]
        return []


def measure(keys: Iterable[str], pieces: Callable[[str], Iterable[object]]) -> dict[str, JsonValue]:
    """Reads files until one of the limits. Returns how many it has begun, how many bytes it has read, and in
    how many seconds. Raises what `pieces` raises."""
    meter = _Meter(keys)
    with ThreadPoolExecutor(READERS) as threads:
        readers = [threads.submit(meter.read, pieces) for _ in range(READERS)]
        for reader in readers:
            reader.result()
    return {"files": meter.files, "bytes": meter.bytes, "seconds": time.monotonic() - meter.began_at}


class _Meter:
    """Counts what several threads read."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.files = self.bytes = 0
        self.began_at = time.monotonic()
        self._keys = iter(keys)
        self._lock = threading.Lock()
        self._is_over = False

    def read(self, pieces: Callable[[str], Iterable[object]]) -> None:
        try:
            for key in self._next_keys():
                for piece in pieces(key):
                    if self._count(len(memoryview(piece))):  # type: ignore[arg-type]
                        return
        except BaseException:
            # The others need not go on.
            self._is_over = True
            raise

    def _next_keys(self) -> Iterator[str]:
        while not self._is_over:
            with self._lock:
                key = next(self._keys, None)
                if key is None:
                    return
                self.files += 1
            yield key

    def _count(self, size: int) -> bool:
        """Returns whether that is enough."""
        with self._lock:
            self.bytes += size
            if self.bytes >= MAX_BYTES or time.monotonic() - self.began_at >= MAX_S:
                self._is_over = True
            return self._is_over
