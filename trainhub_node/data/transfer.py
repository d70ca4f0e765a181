"""Downloads files of a store into the cache: many at a time, large ones in pieces."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

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
POLL_S = 0.5
# Files that are kept in memory until they are whole.
SMALL_BYTES = STREAM_BYTES
# What linking to a known content may meet: it is not known, or has as many names as the file system allows.
NOT_LINKED = (errno.ENOENT, errno.EMLINK)


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
    can send parts of a file."""

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
        threads = [threading.Thread(target=self._work, args=(work,), daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(POLL_S)
                    on_poll()
        finally:
            self._stopping.set()
        if self._error is not None:
            raise self._error

    def _pieces(self, files: Sequence[RemoteFile]) -> Iterator[tuple[PartFile, int, int, int]]:
        """Yields what is to be downloaded. Called by one thread at a time."""
        busy, waits = deque(files), False
        while busy:
            put_off: deque[RemoteFile] = deque()
            for file in busy:
                with self._away_from_store():
                    part = PartFile.open(self._cache, file, waits=waits)
                if part is None:
                    # Another run downloads it; the others come first.
                    put_off.append(file)
                elif os.path.exists(self._cache.name(file.identity)):
                    part.discard()
                    self._on_file(file)
                    self._add(file.size, 1)
                else:
                    yield from self._of_part(part)
            busy, waits = put_off, True

    def _of_part(self, part: PartFile) -> Iterator[tuple[PartFile, int, int, int]]:
        if not self._has_pieces or part.is_whole:
            yield (part, 0, 0, part.file.size)
            return
        self._add(part.bytes_here, 0)
        missing = list(part.missing())
        if not missing:
            self._publish(part)
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
        if part.file.size <= SMALL_BYTES:
            self._publish_content(part, self._read_small(part))
            return
        is_piece = self._has_pieces and not part.is_whole
        digest = None if is_piece else hashlib.sha256()
        if not self._read_store(part, start, end, digest):
            return
        if digest is not None:
            part.cut()
            self._publish(part, digest.hexdigest())
        elif part.finish_piece(number):
            self._publish(part)

    def _read_small(self, part: PartFile) -> memoryview:
        """Returns the content of a small file. Raises TransferFailed."""
        file = part.file
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

    def _publish_content(self, part: PartFile, content: memoryview) -> bytes:
        """Writes a file, whose whole content this is, and gives it its names. Returns its hash."""
        digest = hashlib.sha256(content)
        # Threads that do this at the same time hinder each other: it takes twice their processor time then.
        with self._naming:
            part.write(content, 0)
            part.cut()
            self._give_names(part, digest.hexdigest())
            self._on_file(part.file)
        self._add(0, 1)
        return digest.digest()

    def _publish(self, part: PartFile, sha256: str = "") -> None:
        """Gives a complete file its names. `sha256`: its hash, if that is known. Whether it is on the disk is
        not waited for: see `durability`."""
        with self._away_from_store():
            content = sha256 or part.sha256()
            with self._naming:
                self._give_names(part, content)
            self._on_file(part.file)
        self._add(0, 1)

    def _give_names(self, part: PartFile, sha256: str) -> None:
        """Called by one thread at a time: two files of one content, which arrive together, would both be
        kept. Raises WrongContent."""
        if part.file.sha256 not in ("", sha256):
            # The next download begins anew.
            part.discard()
            raise WrongContent(part.file)
        os.utime(part.descriptor, (part.file.modified_at, part.file.modified_at))
        os.fchmod(part.descriptor, READ_ONLY)
        name, content = self._cache.name(part.file.identity), self._cache.content(sha256)
        try:
            os.link(content, name)
        except OSError as error:
            if error.errno not in NOT_LINKED:
                raise
            # Before its name, so that whoever gets the lock next finds that.
            os.link(part.path, name)
            if error.errno == errno.ENOENT:
                part.move(content)
            else:
                part.discard()
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

    def _add(self, count: int, files: int) -> None:
        with self._count:
            self.bytes += count
            self.files += files


def _options(file: RemoteFile) -> GetOptions:
    is_strong = bool(file.etag) and not file.etag.startswith("W/")
    return {"if_match": file.etag} if is_strong else {}
