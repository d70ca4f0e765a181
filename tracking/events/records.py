"""The records of an event file, by TensorBoard's own reader: a piece of the file at a time, from one record's
end on."""

from __future__ import annotations

import struct
import tempfile

from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

MAX_RECORD_BYTES = 2**31
"""Protocol buffers are no longer."""
_HEAD = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_OVERHEAD_BYTES = 16
"""A record's length and two checksums."""


class DamagedEvents(Exception):
    """From byte `at` of the piece on it is no event file."""

    def __init__(self, at: int) -> None:
        super().__init__(f"damaged at {at}")
        self.at = at


def complete_records(piece: bytes) -> tuple[list[bytes], int]:
    """The whole records at the beginning of `piece`, and how many bytes they are.

    What follows waits for its rest. Raises Damaged where it will never be a record and there are no whole
    ones before it."""
    # The reader takes a file and reads it from its beginning; it does not tell a damaged record from one that
    # is cut, and it makes room for as many bytes as a record says that it has. So it gets those records alone
    # that are here in full.
    with tempfile.NamedTemporaryFile(prefix="trainhub-events-") as file:
        file.write(memoryview(piece)[: _complete_bytes(piece)])
        file.flush()
        complete: list[bytes] = list(RawEventFileLoader(file.name).Load())
    size = sum(len(record) + _OVERHEAD_BYTES for record in complete)
    if not complete and _is_damaged(piece):
        raise DamagedEvents(0)
    return complete, size


def _complete_bytes(piece: bytes) -> int:
    """Where the last record ends that is in the piece in full, by the lengths that the records say."""
    at = 0
    while at + _HEAD.size <= len(piece):
        end = at + _LENGTH.unpack_from(piece, at)[0] + _OVERHEAD_BYTES
        if end > len(piece):
            break
        at = end
    return at


def first_record_length(piece: bytes) -> int:
    """How many bytes its first record has, of which it may hold the beginning alone; 0 while that is not
    known."""
    return _LENGTH.unpack_from(piece)[0] + _OVERHEAD_BYTES if len(piece) >= _HEAD.size else 0


def _is_damaged(piece: bytes) -> bool:
    if len(piece) < _HEAD.size:
        return False
    length_bytes, checksum = _HEAD.unpack_from(piece)
    if masked_crc32c(piece[: _LENGTH.size]) != checksum or length_bytes > MAX_RECORD_BYTES:
        return True
    return len(piece) >= length_bytes + _OVERHEAD_BYTES
