"""Scans formats that contain only numbers and have a header: NumPy arrays, safetensors, GGUF."""

from __future__ import annotations

import json
import math
import struct
from typing import IO, Any

import numpy as np

from registry.scanning.formats.pickles import scan_pickles
from registry.scanning.formats.source import Source, Unreadable, length_of, read_fully
from registry.scanning.formats.templates import scan_template
from registry.scanning.verdict_names import CLEAN, Verdict, combine

NUMPY = b"\x93NUMPY"
GGUF = b"GGUF"
# The limit of the safetensors library itself.
MAX_SAFETENSORS_HEADER = 100_000_000
_SAFETENSORS_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "F64": 64,
    "I64": 64,
    "U64": 64,
    "C64": 64,
}
_GGUF_SIMPLE = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_GGUF_TEXT, _GGUF_LIST = 8, 9
MAX_GGUF_ENTRIES = 1_000_000
MAX_GGUF_TEXT = 16 * 2**20
MAX_DIMENSIONS = 64


def scan_numpy(source: Source) -> Verdict:
    """Judges a .npy file. An array of numbers is clean if the file is as long as its header says; an array of
    objects is a pickle."""
    with source.open() as file:
        major, _ = np.lib.format.read_magic(file)
        readers = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
        # Format 3.0 differs from 2.0 only in the encoding of the header.
        shape, _, dtype = readers.get(major, np.lib.format.read_array_header_2_0)(file)
        start = file.tell()
    if dtype.hasobject:

        def opened() -> IO[bytes]:
            stream = source.open()
            read_fully(stream, start)
            return stream

        # The pickle may refer back to its own beginning only, which is behind the header.
        return scan_pickles(source.inner(source.name, opened))
    expected = start + math.prod(shape) * dtype.itemsize
    if length_of(source) != expected:
        raise Unreadable(f"Its header says {expected:,} bytes, but it has {length_of(source):,}.")
    return Verdict(CLEAN)


def is_safetensors(source: Source, head: bytes) -> bool:
    return source.extension == ".safetensors" or (
        len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= MAX_SAFETENSORS_HEADER
    )


def scan_safetensors(source: Source) -> Verdict:
    """Judges a safetensors file. It is clean if the header follows the format and covers every byte of the
    file."""
    with source.open() as file:
        size = int.from_bytes(read_fully(file, 8), "little")
        if not 2 <= size <= MAX_SAFETENSORS_HEADER:
            raise Unreadable("Its header has an impossible length.")
        text = read_fully(file, size)
    # Before it is parsed: half a header is no JSON, and the parser's message would not say why.
    if len(text) < size:
        raise Unreadable("Its header is cut off.")
    header = json.loads(text)
    if not isinstance(header, dict):
        raise Unreadable("Its header is not a JSON object.")
    end = 0
    tensors = sorted(
        (item for name, item in header.items() if name != "__metadata__"),
        key=lambda item: item["data_offsets"],
    )
    # Each tensor must begin where the one before it ends, which leaves no room for hidden bytes.
    for item in tensors:
        first, last = item["data_offsets"]
        bits = math.prod(item["shape"]) * _SAFETENSORS_BITS[item["dtype"]]
        if first != end or (last - first) * 8 != bits:
            raise Unreadable("Its tensors overlap or leave gaps.")
        end = last
    if length_of(source) != 8 + size + end:
        raise Unreadable("It is longer or shorter than its header says.")
    metadata = header.get("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise Unreadable("Its metadata is not text.")
    return Verdict(CLEAN)


def scan_gguf(source: Source) -> Verdict:
    """Judges a GGUF file by its keys and list of tensors. Chat templates are judged as the programs that they
    are."""
    with source.open() as file:
        # Version 1 had counts of 32 bits here.
        magic, version, tensors, keys = struct.unpack("<4sIQQ", _exactly(file, 24))
        if magic != GGUF or version not in (2, 3) or tensors > MAX_GGUF_ENTRIES or keys > MAX_GGUF_ENTRIES:
            raise Unreadable("It is a GGUF of a version that the scanner does not read.")
        parts = []
        for _ in range(keys):
            key = _gguf_text(file)
            (kind,) = struct.unpack("<I", _exactly(file, 4))
            value = _gguf_value(file, kind, 0)
            if isinstance(value, str) and "chat_template" in key:
                parts.append((key, scan_template(value)))
        for _ in range(tensors):
            _gguf_text(file)
            (dimensions,) = struct.unpack("<I", _exactly(file, 4))
            if dimensions > MAX_DIMENSIONS:
                raise Unreadable("It has a tensor of impossibly many dimensions.")
            # Eight bytes for each dimension, four for the type and eight for the offset.
            _exactly(file, 8 * dimensions + 12)
    return combine(parts)


def _gguf_text(file: IO[bytes]) -> str:
    (size,) = struct.unpack("<Q", _exactly(file, 8))
    if size > MAX_GGUF_TEXT:
        raise Unreadable("A text in it is longer than the scanner reads.")
    return _exactly(file, size).decode("utf-8", "replace")


def _gguf_value(file: IO[bytes], kind: int, depth: int) -> Any:
    """Returns a text; reads numbers and lists without returning them."""
    if kind == _GGUF_TEXT:
        return _gguf_text(file)
    if kind == _GGUF_LIST and depth < 3:
        inner, count = struct.unpack("<IQ", _exactly(file, 12))
        if inner in _GGUF_SIMPLE:
            _pass_over(file, count * struct.calcsize(_GGUF_SIMPLE[inner]))
        else:
            for _ in range(count):
                _gguf_value(file, inner, depth + 1)
        return None
    if kind not in _GGUF_SIMPLE:
        raise Unreadable("It has a value of an unknown kind.")
    _exactly(file, struct.calcsize(_GGUF_SIMPLE[kind]))
    return None


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = read_fully(file, size)
    if len(data) < size:
        raise Unreadable("It is cut off.")
    return data


def _pass_over(file: IO[bytes], size: int) -> None:
    while size:
        size -= len(_exactly(file, min(size, 1024 * 1024)))
