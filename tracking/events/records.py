"""Splits pieces of event files into records with TensorBoard's own reader.

Format of a record: uint64 length, uint32 masked CRC of the length, data, uint32 masked CRC of the data.
"""

from __future__ import annotations

import struct
import tempfile
from importlib import import_module

# The maximum size of a protocol buffer.
MAX_RECORD_BYTES = 2**31
# TFRecord: 64-bit length, CRC-32C of the length, data, CRC-32C of the data; little-endian.
_HEAD = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
# Bytes of a record besides its data: the length and two checksums.
_OVERHEAD_BYTES = 16


class DamagedEvents(Exception):
    """The piece is not valid from byte `at` on."""

    def __init__(self, at: int) -> None:
        super().__init__(f"damaged at {at}")
        self.at = at


def complete_records(piece: bytes) -> tuple[list[bytes], int]:
    """Returns the complete records at the start of `piece` and their total length in bytes.

    Raises DamagedEvents if the piece starts with a damaged record.
    """
    # TensorBoard is imported here for the reason given in event_reader.
    loader = import_module("tensorboard.backend.event_processing.event_file_loader")
    # The reader takes a file name, cannot distinguish a damaged record from a truncated one, and allocates
    # as many bytes as a record's length says. So it gets only the records that are complete.
    with tempfile.NamedTemporaryFile(prefix="trainhub-events-") as file:
        file.write(memoryview(piece)[: _complete_bytes(piece)])
        file.flush()
        complete: list[bytes] = list(loader.RawEventFileLoader(file.name).Load())
    size = sum(len(record) + _OVERHEAD_BYTES for record in complete)
    if not complete and _is_damaged(piece):
        raise DamagedEvents(0)
    return complete, size


def _complete_bytes(piece: bytes) -> int:
    """Returns the end of the last complete record, according to the records' lengths."""
    at = 0
    while at + _HEAD.size <= len(piece):
        end = at + _LENGTH.unpack_from(piece, at)[0] + _OVERHEAD_BYTES
        if end > len(piece):
            break
        at = end
    return at


def first_record_length(piece: bytes) -> int:
    """Returns the length of the first record, which may be incomplete; 0 if the length field is
    incomplete."""
    return _LENGTH.unpack_from(piece)[0] + _OVERHEAD_BYTES if len(piece) >= _HEAD.size else 0


def _is_damaged(piece: bytes) -> bool:
    if len(piece) < _HEAD.size:
        return False
    tensorflow = import_module("tensorboard.compat.tensorflow_stub.pywrap_tensorflow")
    length_bytes, checksum = _HEAD.unpack_from(piece)
    if tensorflow.masked_crc32c(piece[: _LENGTH.size]) != checksum or length_bytes > MAX_RECORD_BYTES:
        return True
    # The record is complete, but the reader returned nothing: the checksum of its data is wrong.
    return len(piece) >= int(length_bytes) + _OVERHEAD_BYTES
