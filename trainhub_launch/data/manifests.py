"""The list of the files of a dataset's version, as the hub keeps it and nodes read it.

A gzip file of several members, each with up to BLOCK_FILES lines, so that a page of the list can be read
without what stands before it. A line is a JSON array: see ListedFile. The order is that of
`order_key`.

Of a file that is uploaded to the hub the content is known: its ETag is the SHA-256 in quotation marks, which
is also what the hub's answers say."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

BLOCK_FILES = 1000
# A higher one takes three times as long for a tenth less.
COMPRESSION = 6
CONTENT_ETAG = re.compile(r'"([0-9a-f]{64})"')


class ListedFile(NamedTuple):
    """`path`: below the dataset; `size` in bytes; `etag`: what the store says about this version of the
    file, "" if nothing; of a folder see `folder_etag`. `modified_at` in seconds since 1970."""

    path: str
    size: int
    etag: str
    modified_at: float


def folder_etag(modified_ns: int, size: int) -> str:
    """Returns what stands for an ETag of a file of a folder: nobody hashes terabytes to list them."""
    return f"{modified_ns}-{size}"


def content_etag(sha256: str) -> str:
    """Returns the ETag of a file of the hub."""
    return f'"{sha256}"'


def content_sha256(etag: str) -> str:
    """Returns the SHA-256 in an ETag of `content_etag`, "" if it is none."""
    match = CONTENT_ETAG.fullmatch(etag)
    return match[1] if match else ""


def order_key(path: str) -> str:
    """Puts the files of a folder one behind the other: "/" comes before every other character."""
    return path.replace("/", "\0")


class ManifestWriter:
    """Writes files, which come in their order. `starts`: where each member begins; `files` and `bytes`:
    how many files there are, and how large they are together."""

    def __init__(self, output: BinaryIO) -> None:
        self.starts: list[int] = []
        self.files = 0
        self.bytes = 0
        self._output = output
        self._lines: list[str] = []

    def write(self, file: ListedFile) -> None:
        self._lines.append(json.dumps(file, separators=(",", ":")))
        self.files += 1
        self.bytes += file.size
        if len(self._lines) == BLOCK_FILES:
            self.flush()

    def flush(self) -> None:
        """Writes the last member. Call it once at the end."""
        if self._lines:
            self.starts.append(self._output.tell())
            text = "\n".join(self._lines) + "\n"
            # Without a time: the same files make the same bytes.
            self._output.write(gzip.compress(text.encode(), COMPRESSION, mtime=0))
            self._lines = []


def read_manifest(stream: BinaryIO) -> Iterator[ListedFile]:
    """Yields the files from the member on at which the stream stands."""
    with gzip.open(stream, "rt") as lines:
        for line in lines:
            yield ListedFile(*json.loads(line))
