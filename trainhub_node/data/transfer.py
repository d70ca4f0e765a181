"""Downloads files of a store into the cache: many at a time, large ones in pieces."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import obstore

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.listing import STORE_ERRORS
from trainhub_node.data.part_file import PartFile
from trainhub_node.data.remote_file import RemoteFile

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ObjectStore

THREADS = 16
STREAM_BYTES = 1024 * 1024
READ_ONLY = 0o444
# Files that are complete and wait for their names keep their descriptors, by which they are locked.
SPARE_DESCRIPTORS = 100
MAX_OPEN = 4096
POLL_S = 0.5
# What linking a file to one more name may meet: the file was removed to make room, or has as many names as
# the file system allows.
NOT_LINKED = (errno.ENOENT, errno.EMLINK)


class TransferFailed(Exception):
    """A file could not be downloaded. `file`: which; the cause is what the store said."""

    def __init__(self, file: RemoteFile) -> None:
        super().__init__(file.key)
        self.file = file


class WrongSize(Exception):
    """A file that arrived has not the size that was listed."""


class Transfer:
    """Downloads what the cache lacks. `bytes` and `files`: what has arrived, for whoever shows progress."""

    def __init__(self, client: ObjectStore, cache: DataCache, *, has_pieces: bool) -> None:
        self.bytes = 0
        self.files = 0
        self._client = client
        self._cache = cache
        self._has_pieces = has_pieces
        self._count = threading.Lock()
        self._choice = threading.Lock()
        self._busy: deque[RemoteFile] = deque()
        self._complete: deque[tuple[PartFile, str]] = deque()
        self._is_something_complete = threading.Event()
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._open = threading.BoundedSemaphore(max(THREADS * 2, min(MAX_OPEN, most - SPARE_DESCRIPTORS)))

    def run(self, files: Sequence[RemoteFile], on_poll: Callable[[], None]) -> None:
        """Returns once the cache has all files. `on_poll` is called meanwhile. Raises TransferFailed,
        WrongSize, OSError, and what `on_poll` raises."""
        work = self._pieces(files)
        threads = [threading.Thread(target=self._work, args=(work,), daemon=True) for _ in range(THREADS)]
        publisher = threading.Thread(target=self._publish_all, daemon=True)
        for thread in (*threads, publisher):
            thread.start()
        try:
            for thread in threads:
                self._join(thread, on_poll)
        finally:
            self._stopping.set()
            self._is_something_complete.set()
        self._join(publisher, on_poll)
        if self._error is not None:
            raise self._error

    def _join(self, thread: threading.Thread, on_poll: Callable[[], None]) -> None:
        while thread.is_alive():
            thread.join(POLL_S)
            on_poll()

    def _pieces(self, files: Sequence[RemoteFile]) -> Iterator[tuple[PartFile, int, int, int]]:
        """Yields what is to be downloaded. Called by one thread at a time."""
        self._busy.extend(files)
        waits = False
        while self._busy:
            put_off: deque[RemoteFile] = deque()
            for file in self._busy:
                while not self._open.acquire(timeout=POLL_S):
                    if self._stopping.is_set():
                        return
                part = PartFile.open(self._cache, file, waits=waits)
                if part is None:
                    # Another run downloads it; the others come first.
                    self._open.release()
                    put_off.append(file)
                elif os.path.exists(self._cache.name(file.identity)):
                    self._add(file.size, 1)
                    self._close(part)
                else:
                    yield from self._of_part(part)
            self._busy, waits = put_off, True

    def _of_part(self, part: PartFile) -> Iterator[tuple[PartFile, int, int, int]]:
        if not self._has_pieces:
            yield (part, 0, 0, part.file.size)
            return
        self._add(part.bytes_here, 0)
        missing = list(part.missing())
        if not missing:
            self._complete_part(part)
        for piece in missing:
            yield (part, *piece)

    def _work(self, work: Iterator[tuple[PartFile, int, int, int]]) -> None:
        try:
            while not self._stopping.is_set():
                with self._choice:
                    piece = next(work, None)
                if piece is None:
                    return
                self._download(*piece)
        except BaseException as error:
            # The thread that started this one raises it.
            self._error = self._error or error
            self._stopping.set()

    def _download(self, part: PartFile, number: int, start: int, end: int) -> None:
        file = part.file
        options: GetOptions = {"if_match": file.etag} if _is_strong(file.etag) else {}
        if self._has_pieces and not part.is_whole:
            options["range"] = (start, end)
        offset = start
        try:
            answer = obstore.get(self._client, file.key, options=options)
            for block in answer.stream(min_chunk_size=STREAM_BYTES):
                view = memoryview(block)
                part.write(view, offset)
                offset += len(view)
                self._add(len(view), 0)
                if self._stopping.is_set():
                    return
        except STORE_ERRORS as error:
            raise TransferFailed(file) from error
        if offset != end:
            raise WrongSize(
                f"{file.key} has other bytes than the {file.size:,} that were listed: it was changed "
                "meanwhile. Start the run again."
            )
        if not self._has_pieces or part.finish_piece(number):
            self._complete_part(part)

    def _complete_part(self, part: PartFile) -> None:
        sha256 = part.sha256()
        os.utime(part.descriptor, (part.file.modified_at, part.file.modified_at))
        os.fchmod(part.descriptor, READ_ONLY)
        self._complete.append((part, sha256))
        self._is_something_complete.set()

    def _publish_all(self) -> None:
        """Gives complete files their names, as many at a time as have become complete meanwhile: what they
        contain must be on the disk before."""
        try:
            folder = os.open(self._cache.folder, os.O_RDONLY | os.O_CLOEXEC)
            libc = ctypes.CDLL(None, use_errno=True)
            while True:
                self._is_something_complete.wait()
                is_last = self._stopping.is_set()
                self._is_something_complete.clear()
                batch = [self._complete.popleft() for _ in range(len(self._complete))]
                if batch and libc.syncfs(folder) != 0:
                    code = ctypes.get_errno()
                    raise OSError(code, os.strerror(code))
                for part, sha256 in batch:
                    self._publish(part, sha256)
                if is_last and not self._complete:
                    return
        except BaseException as error:
            self._error = self._error or error
            self._stopping.set()

    def _publish(self, part: PartFile, sha256: str) -> None:
        name, content = self._cache.name(part.file.identity), self._cache.content(sha256)
        os.makedirs(os.path.dirname(name), mode=0o700, exist_ok=True)
        os.makedirs(os.path.dirname(content), mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.link(part.path, content)
        try:
            os.link(content, name)
        except OSError as error:
            if error.errno not in NOT_LINKED:
                raise
            os.link(part.path, name)
        os.unlink(part.path)
        self._add(0, 1)
        self._close(part)

    def _close(self, part: PartFile) -> None:
        part.close()
        self._open.release()

    def _add(self, count: int, files: int) -> None:
        with self._count:
            self.bytes += count
            self.files += files


def _is_strong(etag: str) -> bool:
    return bool(etag) and not etag.startswith("W/")
