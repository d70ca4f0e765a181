"""Decodes reports within bounded memory.

A msgpack body of one byte per empty list becomes 70 times as large in memory, so a large body is measured
before it is decoded. Normal large reports are mostly log bytes, which the measurement skips: it reads only
the head of each item."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgpack

from trainhub_launch.errors import WireError

# Smaller bodies decode to at most 10 MiB, and are decoded at once.
MEASURED_FROM_BYTES = 128 * 1024
# Numbers, texts, lists and maps of one report: the outputs of an attempt are eight for each file.
MAX_ITEMS = 1_000_000
# Estimated memory of the decoded report, without log bytes.
MAX_DECODED_BYTES = 64 * 2**20
# So much is decoded in a few milliseconds, without copying the body.
DECODED_AT_ONCE_BYTES = 2 * 2**20
# The longest single text.
MAX_TEXT_BYTES = 256 * 1024
# So much is decoded before other threads get their turn.
PIECE_BYTES = 64 * 1024

_one_at_a_time = threading.Lock()
_LIST_BYTES, _MAP_BYTES, _SLOT_BYTES, _ENTRY_BYTES = 56, 184, 8, 56
# A short text is mostly a field's name, of which there is one in memory.
_SMALL, _NUMBER_BYTES, _SHORT_TEXT_BYTES, _TEXT_BYTES = 0, 32, 24, 56
# First byte -> size of the whole item and of the object that it becomes.
_FIXED = {
    # After the specification of MessagePack: positive and negative fixint, fixstr, nil and booleans, then
    # numbers by width.
    **dict.fromkeys(range(0x80), (1, _SMALL)),
    **dict.fromkeys(range(0xE0, 0x100), (1, _SMALL)),
    **{0xA0 + length: (1 + length, _SHORT_TEXT_BYTES) for length in range(32)},
    **dict.fromkeys((0xC0, 0xC2, 0xC3), (1, _SMALL)),
    0xCC: (2, _SMALL),
    0xD0: (2, _SMALL),
    0xCD: (3, _NUMBER_BYTES),
    0xD1: (3, _NUMBER_BYTES),
    0xCA: (5, _NUMBER_BYTES),
    0xCE: (5, _NUMBER_BYTES),
    0xD2: (5, _NUMBER_BYTES),
    0xCB: (9, _NUMBER_BYTES),
    0xCF: (9, _NUMBER_BYTES),
    0xD3: (9, _NUMBER_BYTES),
}
_FIXED_SIZE = [_FIXED.get(head, (0, 0))[0] for head in range(256)]
_FIXED_COST = [_FIXED.get(head, (0, 0))[1] for head in range(256)]
# First byte -> how many bytes tell the length of a binary, a text, a list or a map.
_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_TEXTS, _LISTS, _MAPS = (0xD9, 0xDA, 0xDB), (0xDC, 0xDD), (0xDE, 0xDF)


def decoded(data: bytes) -> object:
    """Returns the value that `data` encodes. Raises WireError for invalid msgpack and for values that need
    too much memory."""
    try:
        # Decoding cannot be interrupted, and what it makes may take fifty times the memory of the body, so
        # large bodies are measured by their heads first.
        if len(data) <= MEASURED_FROM_BYTES:
            return msgpack.unpackb(data)
        if measure(data) <= DECODED_AT_ONCE_BYTES:
            return msgpack.unpackb(data)
        return _by_pieces(data)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise WireError(f"the body is not msgpack: {str(error)[:200]}") from error


def measure(data: bytes) -> int:
    """Returns the estimated memory in bytes of the decoded value, without binary data. Raises WireError above
    the limits."""
    at = cost = items = 0
    waiting = 1
    size, fixed_size, fixed_cost = len(data), _FIXED_SIZE, _FIXED_COST
    while waiting:
        if at >= size:
            raise WireError("the body is not msgpack: it ends too early")
        head = data[at]
        waiting -= 1
        items += 1
        step = fixed_size[head]
        if step:
            at += step
            cost += fixed_cost[head]
        else:
            at, inside, more = _variable(data, at, head)
            waiting += inside
            cost += more
            # What is still to come takes at least a byte each, and lists are made in their whole length at
            # once.
            if waiting > size - at:
                raise WireError("the body is not msgpack: a list is longer than the body")
        if cost > MAX_DECODED_BYTES or items > MAX_ITEMS:
            raise WireError(
                f"the report is too large: it may hold {MAX_ITEMS:,} values that take "
                f"{MAX_DECODED_BYTES // 2**20} MiB "
                "of memory; upgrade the node's agent, or leave fewer files in outputs/"
            )
    if at != size:
        raise WireError("the body is not msgpack: bytes are left over, or missing, at its end")
    return cost


def _variable(data: bytes, at: int, head: int) -> tuple[int, int, int]:
    """Returns for an item with a length: where it (or its head) ends, the number of items inside, and its
    memory."""
    if 0x90 <= head <= 0x9F:
        return at + 1, head & 15, _LIST_BYTES + _SLOT_BYTES * (head & 15)
    if 0x80 <= head <= 0x8F:
        return at + 1, 2 * (head & 15), _cost_of_map(head & 15)
    width = _LENGTHS.get(head)
    if width is None:
        raise WireError("the body is not a report: it holds a kind of value that reports do not have")
    body = at + 1 + width
    length = int.from_bytes(data[at + 1 : body], "big")
    if head in _LISTS:
        return body, length, _LIST_BYTES + _SLOT_BYTES * length
    if head in _MAPS:
        return body, 2 * length, _cost_of_map(length)
    if head in _TEXTS:
        if length > MAX_TEXT_BYTES:
            raise WireError(
                f"the body is not a report: a text of {length} bytes is longer than any in a report"
            )
        return body + length, 0, _TEXT_BYTES + 2 * length
    return body + length, 0, _TEXT_BYTES


def _cost_of_map(entries: int) -> int:
    return _MAP_BYTES if entries <= 5 else _ENTRY_BYTES * entries + _MAP_BYTES


def _by_pieces(data: bytes) -> object:
    """Decodes piece by piece, because the decoder holds the interpreter lock during each call."""
    unpacker = msgpack.Unpacker(max_buffer_size=len(data) + PIECE_BYTES)
    # memoryview: slices of bytes would copy the body once more.
    view = memoryview(data)
    with _without_garbage_collection():
        for start in range(0, len(data), PIECE_BYTES):
            unpacker.feed(view[start : start + PIECE_BYTES])
            try:
                return unpacker.unpack()
            except msgpack.OutOfData:
                continue
    raise WireError("the body is not msgpack: it ends too early")


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disables garbage collection: it would traverse a million new lists again and again, which takes 20
    times as long as decoding them.

    This affects the whole process, so only one large report is decoded at a time."""
    with _one_at_a_time:
        gc.disable()
        try:
            yield
        finally:
            gc.enable()
