"""Reads protocol buffers field by field, without their schema and without holding long values in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, NamedTuple

from registry.scanning.formats.source import Unreadable, read_fully

# Wire types; 3 and 4, the groups of proto2, are refused.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
MAX_FIELD_BYTES = 64 * 2**20


class Field(NamedTuple):
    """Field `number` of a message: a number in `value`, or else the bytes from `start` to `end` of the
    file."""

    number: int
    start: int
    end: int
    value: int = 0
    is_number: bool = False


def fields(file: IO[bytes], start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message from `start` to `end`. The caller may read and seek the file in
    between."""
    at = start
    while at < end:
        file.seek(at)
        tag, at = _varint(file, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise Unreadable("It is not a protocol buffer.")
        if kind == _VARINT:
            value, at = _varint(file, at)
            yield Field(number, at, at, value, is_number=True)
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, at = _varint(file, at)
        if size is None or at + size > end:
            raise Unreadable("It is not a protocol buffer, or it is cut off.")
        yield Field(number, at, at + size)
        at += size


def text(file: IO[bytes], field: Field) -> str:
    """Returns a field as text. Raises Unreadable if it is longer than MAX_FIELD_BYTES."""
    if field.end - field.start > MAX_FIELD_BYTES:
        raise Unreadable("A text in it is longer than the scanner reads.")
    file.seek(field.start)
    return read_fully(file, field.end - field.start).decode("utf-8", "replace")


def _varint(file: IO[bytes], at: int) -> tuple[int, int]:
    value = 0
    # A varint has at most ten bytes of seven bits each.
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise Unreadable("It is not a protocol buffer, or it is cut off.")
        at += 1
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value, at
    raise Unreadable("It is not a protocol buffer.")
