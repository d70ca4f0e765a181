"""The list of all files of a backup, one line of JSON each: read and written as a stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from trainhub.backup.errors import BackupError

NAME = "files.jsonl"


class IndexedFile(NamedTuple):
    """A file of a backup. `path` is below the backup's own folder, that of a blob below the folder of all
    backups. `modified_ns`: the time of its source."""

    path: str
    size: int
    sha256: str
    modified_ns: int

    @property
    def is_blob(self) -> bool:
        return self.path.startswith("blobs/")


@dataclass(frozen=True)
class IndexSummary:
    """Number and bytes of all files of a backup, and the SHA-256 of their list."""

    count: int
    size_bytes: int
    sha256: str


class IndexWriter:
    """Writes the list; `summary` is right once it is closed."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / NAME).open("wb")
        self._hash = hashlib.sha256()
        self._count = self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, file: IndexedFile) -> None:
        line = json.dumps(list(file)).encode() + b"\n"
        self._file.write(line)
        self._hash.update(line)
        self._count += 1
        self._bytes += file.size

    @property
    def summary(self) -> IndexSummary:
        return IndexSummary(self._count, self._bytes, self._hash.hexdigest())


def read_index(folder: Path) -> Iterator[IndexedFile]:
    """Yields every file of the backup in `folder`. Raises BackupError for a line that is none."""
    with (folder / NAME).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                path, size, sha256, modified_ns = json.loads(line)
                yield IndexedFile(str(path), int(size), str(sha256), int(modified_ns))
            except (ValueError, TypeError) as error:
                raise BackupError(
                    f"{folder / NAME} is damaged in line {number}. Use another backup."
                ) from error
