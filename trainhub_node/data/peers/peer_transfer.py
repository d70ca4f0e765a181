"""Downloads files of a list into the cache: each block once from the store by one of several nodes, and from
that node by the others."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.part_file import PIECE_BYTES, recorded_pieces
from trainhub_node.data.peers.block_board import BlockBoard, PeerBlock
from trainhub_node.data.peers.blocks import DataBlock, Segment, block_hash, segments
from trainhub_node.data.peers.cached_blocks import NotHere, read_range
from trainhub_node.data.peers.coordinator import Coordinator
from trainhub_node.data.peers.hub_exchange import HubExchange
from trainhub_node.data.peers.open_parts import OpenParts
from trainhub_node.data.peers.peer_links import PeerLinks
from trainhub_node.data.peers.swarm_table import CachedFile
from trainhub_node.data.remote_file import RemoteFile
from trainhub_node.data.small_part import SmallPart
from trainhub_node.data.transfer import THREADS, Part, Transfer

if TYPE_CHECKING:
    from obstore.store import ObjectStore

TAKERS = 4
TICK_S = 0.1


class PeerTransfer(Transfer):
    """As Transfer, for all `files` of a list and its `blocks`. `on_note` is called with sentences for the
    log."""

    def __init__(  # noqa: PLR0917 - a Transfer, and what it exchanges
        self,
        client: ObjectStore,
        cache: DataCache,
        on_file: Callable[[RemoteFile], object],
        files: Sequence[RemoteFile],
        blocks: Sequence[DataBlock],
        exchange: HubExchange,
        *,
        on_note: Callable[[str], None],
    ) -> None:
        super().__init__(client, cache, self._note_file, has_pieces=True)
        self._on_whole_file = on_file
        self._files = files
        self._sizes = [file.size for file in files]
        self._blocks = blocks
        self._links = PeerLinks(on_note)
        self._board = BlockBoard(blocks, self._sizes)
        self._coordinator = Coordinator(self._board, self._links, exchange, on_note)
        self._parts = OpenParts(cache, self._publish, self._find_file)
        # Files that the cache lacks, and those that it has by now although the run does not see them yet.
        self._lacking: dict[str, RemoteFile] = {}
        self._arriving: set[str] = set()
        self._lock = threading.Lock()

    @property
    def bytes_from_peers(self) -> dict[str, int]:
        """Name of a node -> what came from it."""
        return dict(self._links.bytes)

    def run(self, files: Sequence[RemoteFile], on_poll: Callable[[], None]) -> None:
        if not files:
            self._coordinator.say_complete()
            return
        self._lacking = {file.identity: file for file in files}
        self._board.begin(self._done_blocks())
        for work, count in ((self._read, THREADS), (self._take, TAKERS)):
            for _ in range(count):
                self._start(work)
        try:
            self._coordinate(on_poll)
        finally:
            self._stopping.set()
            with self._board.changed:
                self._board.changed.notify_all()
        if self._error is not None:
            raise self._error
        self._parts.close()
        self._coordinator.say_complete()

    def _done_blocks(self) -> set[int]:
        """Returns the blocks that are here: of files in the cache, and pieces that have arrived earlier."""
        done, pieces = set(), set[int]()
        of_file = -1
        for number, block in enumerate(self._blocks):
            file = self._files[block.first]
            if file.size <= PIECE_BYTES:
                group = self._files[block.first : block.first + block.files]
                if not any(member.identity in self._lacking for member in group):
                    done.add(number)
                continue
            if file.identity not in self._lacking:
                done.add(number)
                continue
            if block.first != of_file:
                of_file, count = block.first, -(-file.size // PIECE_BYTES)
                pieces = recorded_pieces(self._cache.pieces(file.identity), count)
                # If only its names were missing, reading any piece of it gives it those.
                pieces = set() if len(pieces) == count else pieces
            if block.piece in pieces:
                done.add(number)
                self._add(block.length, 0)
        return done

    def _coordinate(self, on_poll: Callable[[], None]) -> None:
        while self._lacking or (self._board.outstanding and not self._coordinator.is_stalled):
            if self._stopping.is_set():
                return
            self._coordinator.step(self.bytes, is_busy=bool(self.not_at_store))
            self._board.pump()
            on_poll()
            with self._board.changed:
                self._board.changed.wait(TICK_S)

    def _guard(self, work: Callable[..., None], *arguments: object) -> None:
        super()._guard(work, *arguments)
        if self._stopping.is_set():
            with self._board.changed:
                self._board.changed.notify_all()

    # What comes from the store.

    def _read(self) -> None:
        while (item := self._board.next_segment(self._stopping)) is not None:
            number, segment = item
            try:
                digest = self._read_segment(segment)
            except NotHere:
                # Room was made for other data after all.
                self._board.abandon(number)
                continue
            if digest is None and not self._stopping.is_set():
                self._board.delay_segment(number, segment)
            elif digest is not None:
                self._board.finish_segment(number, segment, digest)

    def _read_segment(self, segment: Segment) -> bytes | None:
        """Returns the hash of a segment once it is here; None if it cannot be had now."""
        file = self._files[segment.file]
        if file.identity not in self._lacking:
            return self._hash_here(file, segment)
        if file.size > PIECE_BYTES:
            return self._read_piece(file, segment)
        part = self._open(file)
        if part is None:
            return None
        digest = hashlib.sha256()
        if isinstance(part, SmallPart):
            content = self._read_small(file)
            digest.update(content)
            self._publish_content(part, content, digest.hexdigest())
        elif self._read_store(part, 0, file.size, digest):
            self._publish(part, digest.hexdigest())
        else:
            return None
        return digest.digest()

    def _read_piece(self, file: RemoteFile, segment: Segment) -> bytes | None:
        with self._parts.use(file) as part:
            if part is None:
                return None
            number = segment.start // PIECE_BYTES
            digest = hashlib.sha256()
            if part.has_piece(number):
                with self._away_from_store():
                    return part.hash_piece(number)
            if not self._read_store(part, segment.start, segment.end, digest):
                return None
            part.finish_piece(number)
            return digest.digest()

    def _hash_here(self, file: RemoteFile, segment: Segment) -> bytes:
        digest = hashlib.sha256()
        with self._away_from_store():
            here = CachedFile(file.identity, file.size)
            for chunk in read_range(self._cache, here, segment.start, segment.end - segment.start):
                digest.update(chunk)
        return digest.digest()

    # What comes from other nodes.

    def _take(self) -> None:
        while (block := self._board.next_take(self._stopping)) is not None:
            parts = segments(self._blocks[block.number], self._sizes)
            data = self._take_bytes(block, parts)
            if data is not None and self._write(parts, data):
                self._board.finish_take(block.number)
            else:
                self._board.fail_take(block.number, is_peers_fault=data is None)

    def _take_bytes(self, block: PeerBlock, parts: Sequence[Segment]) -> list[memoryview] | None:
        """Returns the right bytes of each segment; None if no node gives them."""
        for peer in self._links.candidates(block.holders):
            data = self._links.take(peer, block.number, self._blocks[block.number])
            if data is None:
                continue
            view, pieces, start = memoryview(data), [], 0
            for part in parts:
                pieces.append(view[start : start + part.end - part.start])
                start += part.end - part.start
            if block_hash(hashlib.sha256(piece).digest() for piece in pieces) == block.digest:
                self._links.add_bytes(peer, len(data))
                self._add(len(data), 0)
                return pieces
            self._links.drop(peer)
        return None

    def _write(self, parts: Sequence[Segment], data: Sequence[memoryview]) -> bool:
        """Puts the segments of a block into the cache. Returns whether all of them are there now."""
        written = [self._write_segment(part, piece) for part, piece in zip(parts, data, strict=True)]
        return all(written)

    def _write_segment(self, segment: Segment, data: memoryview) -> bool:
        file = self._files[segment.file]
        if file.identity not in self._lacking:
            return True
        if file.size > PIECE_BYTES:
            with self._parts.use(file) as part:
                if part is None:
                    return file.identity not in self._lacking
                part.write(data, segment.start)
                part.finish_piece(segment.start // PIECE_BYTES)
            return True
        whole = self._open(file)
        if whole is not None:
            self._publish_content(whole, data, hashlib.sha256(data).hexdigest())
        return file.identity not in self._lacking

    # The files.

    def _open(self, file: RemoteFile) -> Part | None:
        """Returns the part of a small file; None if the cache has the file, or another process the part."""
        part = self._open_part(file, waits=False)
        if part is not None and self._cache.has(file.identity):
            part.discard()
            self._find_file(file)
            return None
        return part

    def _find_file(self, file: RemoteFile) -> None:
        """The cache has a file that another download has brought."""
        self._add(file.size, 1)
        self._note_file(file)

    def _note_file(self, file: RemoteFile) -> None:
        with self._lock:
            if file.identity in self._arriving or file.identity not in self._lacking:
                return
            self._arriving.add(file.identity)
        self._on_whole_file(file)
        with self._lock:
            del self._lacking[file.identity]
