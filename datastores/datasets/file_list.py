"""Reads the lists of the files of versions: a page of one, and what differs between two."""

from __future__ import annotations

import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

from datastores.models import DatasetVersion, Manifest
from trainhub_launch.data.manifests import BLOCK_FILES, ListedFile, order_key, read_manifest
from workspaces.stored_files import blob_cache

# So many files of each kind of change are named.
MAX_NAMED = 100


class Change(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass
class Changed:
    """The files with one kind of change: how many, and `first` of them."""

    files: int = 0
    first: list[ListedFile] = field(default_factory=list)

    def add(self, file: ListedFile) -> None:
        self.files += 1
        if len(self.first) < MAX_NAMED:
            self.first.append(file)


@dataclass(frozen=True)
class Differences:
    """What is different in a version from version `since`."""

    since: int
    added: Changed
    removed: Changed
    changed: Changed

    @property
    def is_same(self) -> bool:
        return not (self.added.files or self.removed.files or self.changed.files)

    def to_json(self) -> dict[str, Any]:
        return {"since": self.since, **{kind: asdict(getattr(self, kind)) for kind in Change}}


def differences_of(version: DatasetVersion) -> Differences | None:
    """Returns what is different from the ready version before it, None if there is none."""
    stored = version.differences
    if not stored:
        return None
    kinds = {
        kind: Changed(stored[kind]["files"], [ListedFile(*file) for file in stored[kind]["first"]])
        for kind in Change
    }
    return Differences(stored["since"], **{str(kind): value for kind, value in kinds.items()})


def pack_starts(starts: Sequence[int]) -> bytes:
    """Returns where the members of a list begin as `Manifest.starts` has it."""
    return array.array("q", starts).tobytes()


def read_page(version: DatasetVersion, start: int, count: int) -> list[ListedFile]:
    """Returns `count` files of a ready version, from number `start` on, which begins at 0; fewer at its
    end."""
    manifest = version.manifest
    starts = array.array("q", bytes(manifest.starts))
    block, skipped = divmod(start, BLOCK_FILES)
    if block >= len(starts):
        return []
    with blob_cache.local_path(manifest.sha256).open("rb") as stream:
        stream.seek(starts[block])
        return list(islice(read_manifest(stream), skipped, skipped + count))


def find_files(version: DatasetVersion, paths: Iterable[str]) -> dict[str, ListedFile]:
    """Returns those of these files that a ready version has, by their paths. Reads only the members of the
    list that can have them."""
    manifest = version.manifest
    starts = array.array("q", bytes(manifest.starts))
    files_by_path: dict[str, ListedFile] = {}
    with blob_cache.local_path(manifest.sha256).open("rb") as stream:

        def first_key(block: int) -> str:
            stream.seek(starts[block])
            return order_key(next(read_manifest(stream)).path)

        by_block: defaultdict[int, set[str]] = defaultdict(set)
        for path in paths:
            by_block[bisect_right(range(len(starts)), order_key(path), key=first_key) - 1].add(path)
        for block, names in by_block.items():
            if block >= 0:
                stream.seek(starts[block])
                files = islice(read_manifest(stream), BLOCK_FILES)
                files_by_path |= {file.path: file for file in files if file.path in names}
    return files_by_path


def compare(old: DatasetVersion, new: Manifest) -> Differences:
    """Returns what is different in the new list from that of a ready version. Both are read side by side,
    in little memory."""
    result = Differences(old.number, Changed(), Changed(), Changed())
    if old.manifest.sha256 == new.sha256:
        return result
    with (
        blob_cache.local_path(old.manifest.sha256).open("rb") as before,
        blob_cache.local_path(new.sha256).open("rb") as after,
    ):
        for change, file in _compared(read_manifest(before), read_manifest(after)):
            getattr(result, change).add(file)
    return result


def _compared(
    before: Iterator[ListedFile], after: Iterator[ListedFile]
) -> Iterator[tuple[Change, ListedFile]]:
    old, new = next(before, None), next(after, None)
    while old is not None or new is not None:
        if old is not None and (new is None or order_key(old.path) < order_key(new.path)):
            yield Change.REMOVED, old
            old = next(before, None)
        elif new is not None and (old is None or order_key(new.path) < order_key(old.path)):
            yield Change.ADDED, new
            new = next(after, None)
        elif old is not None and new is not None:
            if _content(old) != _content(new):
                yield Change.CHANGED, new
            old, new = next(before, None), next(after, None)


def _content(file: ListedFile) -> tuple[object, ...]:
    """Returns what tells one content of a file from another. A store without ETags has only the time."""
    return (file.size, file.etag or file.modified_at)
