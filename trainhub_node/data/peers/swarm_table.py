"""Which files nodes exchange under the name of a swarm: written by a download, read by the process that
serves other nodes. A request names a swarm and a block by its number, never a path."""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.peers.blocks import DataBlock
from trainhub_node.data.remote_file import RemoteFile

_HEAD = struct.Struct("<4sII")
_BLOCK = struct.Struct("<IIQI")
_FILE = struct.Struct("<32sQ")
_MARK = b"THS1"
# After which a table that no download has used is removed.
UNUSED_S = 30 * 86400.0


class CachedFile(NamedTuple):
    """A file by its name in the cache (see RemoteFile.identity)."""

    identity: str
    size: int


def write_table(
    cache: DataCache, swarm: str, files: Sequence[RemoteFile], blocks: Sequence[DataBlock]
) -> None:
    """Writes the table unless it is there, and removes those that were not used for long."""
    path = cache.swarm(swarm)
    _remove_unused(os.path.dirname(path))
    try:
        os.utime(path)
    except FileNotFoundError:
        aside = f"{path}.{os.getpid()}"
        with open(aside, "wb") as output:
            output.write(_HEAD.pack(_MARK, len(blocks), len(files)))
            output.writelines(_BLOCK.pack(*block) for block in blocks)
            output.writelines(_FILE.pack(bytes.fromhex(file.identity), file.size) for file in files)
        os.rename(aside, path)


def _remove_unused(folder: str) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if time.time() - entry.stat().st_mtime > UNUSED_S:
                    os.unlink(entry.path)


class SwarmTable:
    """A table as it lies on the disk; it takes no memory of this process. Raises FileNotFoundError if there
    is none."""

    def __init__(self, cache: DataCache, swarm: str) -> None:
        with open(cache.swarm(swarm), "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        _, self._blocks, self._files = _HEAD.unpack_from(self._data)

    def block(self, number: int) -> DataBlock | None:
        """Returns the block with this number, None if there is none."""
        if number >= self._blocks:
            return None
        return DataBlock(*_BLOCK.unpack_from(self._data, _HEAD.size + number * _BLOCK.size))

    def file(self, number: int) -> CachedFile:
        start = _HEAD.size + self._blocks * _BLOCK.size + number * _FILE.size
        identity, size = _FILE.unpack_from(self._data, start)
        return CachedFile(identity.hex(), size)
