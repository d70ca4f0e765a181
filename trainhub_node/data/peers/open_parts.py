"""The large files whose pieces arrive, from the store and from other nodes, in any order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.part_file import PartFile
from trainhub_node.data.remote_file import RemoteFile

# Files of which nothing is being written are set aside above this number.
MAX_OPEN = 128


class OpenParts:
    """`on_whole` is called with a part once all its pieces are there and nobody uses it; `on_here` with a
    file that another download has completed."""

    def __init__(
        self,
        cache: DataCache,
        on_whole: Callable[[PartFile], None],
        on_here: Callable[[RemoteFile], None],
    ) -> None:
        self._cache = cache
        self._on_whole = on_whole
        self._on_here = on_here
        self._changed = threading.Condition()
        self._parts: dict[str, PartFile] = {}
        self._users: dict[str, int] = {}

    @contextmanager
    def use(self, file: RemoteFile) -> Iterator[PartFile | None]:
        """Yields the part of a file; None if the file is complete, or another process has its part."""
        part = self._acquire(file)
        try:
            yield part
        finally:
            if part is not None:
                self._release(part)

    def close(self) -> None:
        """Sets aside what nobody uses."""
        with self._changed:
            self._set_aside(0)

    def _acquire(self, file: RemoteFile) -> PartFile | None:
        with self._changed:
            # While one thread completes the file, it has no users that count.
            while self._users.get(file.identity, 0) < 0:
                self._changed.wait()
            part = self._parts.pop(file.identity, None)
            if part is None:
                self._set_aside(MAX_OPEN)
                part = PartFile.open(self._cache, file, waits=False)
                if part is None:
                    return None
                if self._cache.has(file.identity):
                    part.discard()
                    self._on_here(file)
                    return None
            # The last one is the one that was used last.
            self._parts[file.identity] = part
            self._users[file.identity] = self._users.get(file.identity, 0) + 1
            return part

    def _release(self, part: PartFile) -> None:
        name = part.file.identity
        with self._changed:
            self._users[name] -= 1
            if self._users[name] or not part.has_all_pieces:
                return
            self._users[name] = -1
        try:
            self._on_whole(part)
        finally:
            with self._changed:
                del self._parts[name], self._users[name]
                self._changed.notify_all()

    def _set_aside(self, limit: int) -> None:
        """Leaves at most `limit` parts open, besides those that are used. The caller holds the lock."""
        unused = [name for name in self._parts if not self._users[name]]
        for name in unused[: max(0, len(self._parts) - limit)]:
            self._parts.pop(name).set_aside()
            del self._users[name]
