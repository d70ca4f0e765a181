"""The bytes of a file in a store, which a process of its own reads (see trainhub_launch.data.store_work)."""

from __future__ import annotations

import hashlib
import json
import os
import select
from contextlib import ExitStack
from typing import IO, cast

from datastores.object_reads.store_object import StoreObject
from datastores.outgoing_proxy import OutgoingProxy
from datastores.store_process import StoreProcessFailed, failure_of, started_process
from trainhub_launch.data.probe_work import READ
from trainhub_launch.data.store_errors import subject
from trainhub_launch.data.stores import Store
from workspaces.stored_files.preconditions import Span

POLL_S = 1.0
# A store from which nothing comes for so long is given up.
STALL_S = 60.0
PIPE_BYTES = 1024 * 1024


class StoreStream:
    """Reads `span` of the file. The file must have the size that its node said; one that is read as a whole
    must have its SHA-256, too, or the last piece is not returned. The methods block.

    The process goes on only as fast as its pipe is emptied, so little memory is used. `secret`: the value of
    the secret of its store, "" without one."""

    def __init__(self, store: Store, item: StoreObject, span: Span, secret: str) -> None:
        self._store, self._item = store, item
        self._start, self._end = span
        self._secret = secret
        self._open = ExitStack()
        self._hash = hashlib.sha256()
        self._position = self._start
        self._buffer = bytearray()
        self._piece_bytes = 0
        self._silent_s = 0.0
        self._is_done = False

    def start(self) -> None:
        """Starts the process."""
        request = {
            "work": READ,
            "path": self._item.path,
            "secret": self._secret,
            "size": self._item.size_bytes,
            "start": self._start,
            "end": self._end,
        }
        self._proxy = self._open.enter_context(OutgoingProxy())
        process, self._errors = self._open.enter_context(started_process(self._store, request, self._proxy))
        self._pipe = cast("IO[bytes]", process.stdout).fileno()
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)

    def close(self) -> None:
        """Ends the process."""
        self._open.close()

    def read_piece(self) -> bytes | None:
        """Returns the next piece, b"" at the end; None if there is none yet, after POLL_S seconds. Raises
        StoreProcessFailed."""
        if self._is_done:
            return b""
        while (piece := self._take_piece()) is None:
            if not self._poll.poll(POLL_S * 1000):
                self._silent_s += POLL_S
                if self._silent_s >= STALL_S:
                    raise StoreProcessFailed(f"{subject(self._store)} sends nothing for {STALL_S:.0f} s.")
                return None
            self._silent_s = 0.0
            data = os.read(self._pipe, PIPE_BYTES)
            if not data:
                raise failure_of(self._store, self._proxy, "", self._errors)
            self._buffer += data
        return self._accept(piece)

    def _take_piece(self) -> bytes | None:
        """Returns a piece that has arrived, b"" at the end, None if there is none yet."""
        if not self._piece_bytes:
            end = self._buffer.find(b"\n")
            if end < 0:
                return None
            line = json.loads(self._buffer[:end])
            del self._buffer[: end + 1]
            if "error" in line:
                raise failure_of(self._store, self._proxy, line["error"], self._errors)
            if "done" in line:
                return b""
            self._piece_bytes = line["piece"]
        if len(self._buffer) < self._piece_bytes:
            return None
        piece = bytes(self._buffer[: self._piece_bytes])
        del self._buffer[: self._piece_bytes]
        self._piece_bytes = 0
        return piece

    def _accept(self, piece: bytes) -> bytes:
        """Returns the piece once it is checked. Raises StoreProcessFailed."""
        self._position += len(piece)
        if self._position > self._end or (not piece and self._position < self._end):
            raise StoreProcessFailed(f"{subject(self._store)} sent another number of bytes than it said.")
        self._hash.update(piece)
        if self._position == self._end:
            self._is_done = True
            is_whole = (self._start, self._end) == (0, self._item.size_bytes)
            if is_whole and self._hash.hexdigest() != self._item.sha256:
                raise StoreProcessFailed(
                    f"The file at {self._item.place} is not the one that the run wrote: it has another "
                    "SHA-256."
                )
        return piece
