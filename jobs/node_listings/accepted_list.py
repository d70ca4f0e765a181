"""Takes over a list that a node has uploaded: checked line by line and written anew, in little memory."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from datastores.datasets import listing
from datastores.models import DatasetVersion
from trainhub_launch.data.file_names import MAX_FILES, MAX_PATH_BYTES, is_file_name
from trainhub_launch.data.manifests import ListedFile, ManifestWriter, order_key
from workspaces.stored_files import blob_cache, blobs

# A path in JSON, with the longest escapes, and what else a line has.
MAX_LINE = 6 * MAX_PATH_BYTES + 10_000
MAX_ETAG = 1024
MAX_SIZE = 2**62


class BadList(Exception):
    """The node has uploaded no list. The message is a phrase."""


def accept_list(version: DatasetVersion, sha256: str, *, is_file: bool) -> None:
    """Makes the version ready with the uploaded list. Raises BadList."""
    output = blobs.part_path()
    try:
        with blob_cache.local_path(sha256).open("rb") as source, output.open("wb") as target:
            writer = ManifestWriter(target)
            for file in _checked(source):
                writer.write(file)
            writer.flush()
        if not writer.files or (is_file and writer.files > 1):
            raise BadList(f"it has {writer.files} files")
        done = {"files": writer.files, "bytes": writer.bytes, "starts": writer.starts, "is_file": is_file}
        listing.store_list(version, done, output)
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise BadList(f"it cannot be read ({error!r:.200})") from error
    finally:
        Path(output).unlink(missing_ok=True)


def _checked(source: BinaryIO) -> Iterator[ListedFile]:
    """Yields the files. Raises BadList, and what gzip and JSON raise."""
    last = ""
    for number, line in enumerate(_lines(source), 1):
        path, size, etag, modified_at = json.loads(line)
        if number > MAX_FILES:
            raise BadList(f"it has more than {MAX_FILES:,} files")
        if type(path) is not str or not is_file_name(path) or (last and order_key(path) <= order_key(last)):
            raise BadList(f"its file {number} has no name, or not the next one")
        if type(size) is not int or not 0 <= size <= MAX_SIZE:
            raise BadList(f"its file {number} has no size")
        if type(etag) is not str or len(etag) > MAX_ETAG or not math.isfinite(modified_at):
            raise BadList(f"its file {number} has no ETag or no time")
        last = path
        yield ListedFile(path, size, etag, float(modified_at))


def _lines(source: BinaryIO) -> Iterator[bytes]:
    with gzip.open(source) as lines:
        while line := lines.readline(MAX_LINE):
            if len(line) == MAX_LINE:
                raise BadList("it has a line without an end")
            yield line
