"""Downloads files of a store into the cache: many at a time, large ones in pieces."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

import obstore

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.listing import STORE_ERRORS
from trainhub_node.data.part_file import PartFile
from trainhub_node.data.remote_file import RemoteFile
from trainhub_node.data.small_part import SmallFileLocks, SmallPart

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ObjectStore

THREADS = 16
STREAM_BYTES = 256 * 1024
POLL_S = 0.5
# Files that are kept in memory until they are whole, and how much of them until it is written.
SMALL_BYTES = 1024 * 1024
MAX_WAITING_BYTES = 8 * SMALL_BYTES
# What linking to a known content may meet: it is not known, or has as many names as the file system allows.
NOT_LINKED = (errno.ENOENT, errno.EMLINK)


Part = PartFile | SmallPart


class Digest(Protocol):
    def update(self, data: memoryview, /) -> None: ...


class TransferFailed(Exception):
    """A file could not be downloaded. `file`: which; the cause is what the store said."""

    def __init__(self, file: RemoteFile) -> None:
        super().__init__(file.key)
        self.file = file


class WrongSize(TransferFailed):
    """A file that arrived has not the size that was listed."""


class WrongContent(TransferFailed):
    """A file that arrived has not the SHA-256 that was listed."""


class Transfer:
    """Downloads what the cache lacks. `bytes` and `files`: what has arrived, for whoever shows progress;
    `not_at_store`: how many threads hash a file, give it to the run, or wait for another run that downloads
    it. `on_file` is called, by several threads, with each file once the cache has it. `has_pieces`: the store
    can send parts of a file. Only what must have a certain content is hashed: see contents.naming."""

    def __init__(
        self,
        client: ObjectStore,
        cache: DataCache,
        on_file: Callable[[RemoteFile], object],
        *,
        has_pieces: bool,
    ) -> None:
        self.bytes = 0
        self.files = 0
        self.not_at_store = 0
        self._client = client
        self._cache = cache
        self._on_file = on_file
        self._has_pieces = has_pieces
        self._count = threading.Lock()
        self._choice = threading.Lock()
        self._naming = threading.Lock()
        self._locks = SmallFileLocks(cache)
        # Small files that have arrived, for the thread that writes them; None is the end.
        self._arrivals: SimpleQueue[tuple[SmallPart, memoryview, str] | None] = SimpleQueue()
        self._waiting_bytes = 0
        self._stopping = threading.Event()
        self._error: BaseException | None = None

    @property
    def bytes_from_peers(self) -> Mapping[str, int]:
        """Name of another node -> the bytes that came from it and not from the store."""
        return {}

    def run(self, files: Sequence[RemoteFile], on_poll: Callable[[], None]) -> None:
        """Returns once the cache has all files. `on_poll` is called meanwhile. Raises TransferFailed,
        OSError, and what `on_poll` raises."""
        work = self._pieces(files)
        readers = [self._start(self._read_pieces, work) for _ in range(THREADS)]
        writer = self._start(self._write_arrivals)
        try:
            for thread in readers:
                _wait_for(thread, on_poll)
            self._arrivals.put(None)
            _wait_for(writer, on_poll)
        finally:
            self._stopping.set()
        if self._error is not None:
            raise self._error

    def _pieces(self, files: Sequence[RemoteFile]) -> Iterator[tuple[Part, int, int, int]]:
        """Yields what is to be downloaded. Called by one thread at a time."""
        busy, waits = deque(files), False
        while busy:
            put_off: deque[RemoteFile] = deque()
            for file in busy:
                with self._away_from_store() if waits else nullcontext():
                    part = self._open_part(file, waits=waits)
                if part is None:
                    # Another run downloads it; the others come first.
                    put_off.append(file)
                elif self._cache.has(file.identity):
                    part.discard()
                    self._on_file(file)
                    self._add(file.size, 1)
                else:
                    yield from self._of_part(part)
            busy, waits = put_off, True

    def _open_part(self, file: RemoteFile, *, waits: bool) -> Part | None:
        """Returns the part, None while another process or thread downloads it, unless this call `waits`."""
        if file.size <= SMALL_BYTES:
            return SmallPart.open(self._cache, file, self._locks, waits=waits)
        return PartFile.open(self._cache, file, waits=waits)

    def _of_part(self, part: Part) -> Iterator[tuple[Part, int, int, int]]:
        if isinstance(part, SmallPart) or not self._has_pieces or part.is_whole:
            yield (part, 0, 0, part.file.size)
            return
        self._add(part.bytes_here, 0)
        missing = list(part.missing())
        if not missing:
            self._publish(part)
        for piece in missing:
            yield (part, *piece)

    def _start(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=self._guard, args=(work, *arguments), daemon=True)
        thread.start()
        return thread

    def _guard(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            # The thread that started this one raises it.
            self._error = self._error or error
            self._stopping.set()

    def _read_pieces(self, work: Iterator[tuple[Part, int, int, int]]) -> None:
        while not self._stopping.is_set():
            with self._choice:
                piece = next(work, None)
            if piece is None:
                return
            self._download(*piece)

    def _write_arrivals(self) -> None:
        """One thread writes while the others read on: several would take twice the processor time."""
        while (arrival := self._arrivals.get()) is not None:
            self._publish_content(*arrival)
            self._add(0, 0, waiting=-len(arrival[1]))

    def _download(self, part: Part, number: int, start: int, end: int) -> None:
        if isinstance(part, SmallPart):
            content = self._read_small(part.file)
            sha256 = hashlib.sha256(content).hexdigest() if part.file.sha256 else ""
            if self._waiting_bytes < MAX_WAITING_BYTES:
                self._add(0, 0, waiting=len(content))
                self._arrivals.put((part, content, sha256))
            else:  # The disk is slower than the store.
                self._publish_content(part, content, sha256)
        elif self._has_pieces and not part.is_whole:
            if self._read_store(part, start, end, None) and part.finish_piece(number):
                self._publish(part)
        else:
            digest = hashlib.sha256() if part.file.sha256 else None
            if self._read_store(part, start, end, digest):
                self._publish(part, digest.hexdigest() if digest else "")

    def _read_small(self, file: RemoteFile) -> memoryview:
        """Returns the content of a small file. Raises TransferFailed."""
        try:
            answer = obstore.get(self._client, file.key, options=_options(file))
            # A large one that has taken its place would not fit into the memory.
            content = memoryview(answer.bytes() if answer.range[1] == file.size else b"")
        except STORE_ERRORS as error:
            raise TransferFailed(file) from error
        if len(content) != file.size:
            raise WrongSize(file)
        self._add(len(content), 0)
        return content

    def _read_store(self, part: PartFile, start: int, end: int, digest: Digest | None) -> bool:
        """Brings these bytes of a file into its part, and into `digest`. Returns False if the transfer was
        stopped in the middle. Raises TransferFailed."""
        file = part.file
        options = _options(file)
        if self._has_pieces and not part.is_whole:
            options["range"] = (start, end)
        offset = start
        try:
            answer = obstore.get(self._client, file.key, options=options)
            for block in answer.stream(min_chunk_size=STREAM_BYTES):
                view = memoryview(block)
                part.write(view, offset)
                if digest is not None:
                    digest.update(view)
                offset += len(view)
                self._add(len(view), 0)
                if self._stopping.is_set():
                    return False
        except STORE_ERRORS as error:
            raise TransferFailed(file) from error
        if offset != end:
            raise WrongSize(file)
        return True

    def _publish_content(self, part: Part, content: memoryview, sha256: str) -> None:
        """As `_publish`, for a file whose whole content this is."""
        with self._naming:
            part.write_whole(content)
            self._give_names(part, sha256)
            self._on_file(part.file)
        self._add(0, 1)

    def _publish(self, part: PartFile, sha256: str = "") -> None:
        """Gives a complete file its names. `sha256`: its hash, if that is known. Whether it is on the disk is
        not waited for: see `durability`."""
        with self._away_from_store():
            content = part.sha256() if part.file.sha256 and not sha256 else sha256
            with self._naming:
                self._give_names(part, content)
            self._on_file(part.file)
        self._add(0, 1)

    def _give_names(self, part: Part, sha256: str) -> None:
        """Called by one thread at a time: two files of one content, which arrive together, would both be
        kept. Raises WrongContent."""
        if part.file.sha256 not in ("", sha256):
            # The next download begins anew.
            part.discard()
            raise WrongContent(part.file)
        name, content = self._cache.name(part.file.identity), self._cache.content(sha256)
        if not sha256:
            part.seal()
            part.move(name)
            return
        try:
            os.link(content, name)
        except OSError as error:
            if error.errno not in NOT_LINKED:
                raise
            part.seal()
            if error.errno == errno.ENOENT:
                # Before the part is gone, so that whoever gets the lock next finds the name.
                os.link(part.path, name)
                part.move(content)
            else:
                part.move(name)
        else:
            part.discard()

    @contextmanager
    def _away_from_store(self) -> Iterator[None]:
        with self._count:
            self.not_at_store += 1
        try:
            yield
        finally:
            with self._count:
                self.not_at_store -= 1

    def _add(self, count: int, files: int, waiting: int = 0) -> None:
        with self._count:
            self.bytes += count
            self.files += files
            self._waiting_bytes += waiting


def _wait_for(thread: threading.Thread, on_poll: Callable[[], None]) -> None:
    while thread.is_alive():
        thread.join(POLL_S)
        on_poll()


def _options(file: RemoteFile) -> GetOptions:
    is_strong = bool(file.etag) and not file.etag.startswith("W/")
    return {"if_match": file.etag} if is_strong else {}
