"""Lists the files of a store into a manifest, in bounded memory.

The hub and nodes do so with obstore, which this package does not import."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trainhub_launch.data.file_names import (
    MAX_FILES,
    both_file_and_folder,
    is_file_name,
    nothing_there,
    odd_name,
    too_many,
)
from trainhub_launch.data.file_order import in_order
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_launch.data.store_errors import subject
from trainhub_launch.data.stores import Store

CHUNK = 1000
PROGRESS_S = 1.0
# What obstore says about an object.
Facts = Mapping[str, Any]


class ListingError(Exception):
    """The files cannot be listed; the message is a sentence."""


class StoreListing:
    """Lists the files of `store` at `path`. `head` and `chunks`: obstore's functions `head` and `list` for
    it; `report` is called with the numbers of files and bytes up to now, each second."""

    def __init__(
        self,
        store: Store,
        path: str,
        *,
        head: Callable[[str], Facts],
        chunks: Iterable[Sequence[Facts]],
        report: Callable[[int, int], None],
    ) -> None:
        self._subject = subject(store)
        self._path = path
        self._head = head
        self._chunks = chunks
        self._report = report
        self._files = self._bytes = 0
        self._line_at = time.monotonic()

    def write(self, writer: ManifestWriter, folder: str | None = None) -> bool:
        """Writes all files. Returns whether there is only one, which is at `path` itself. `folder`: for
        temporary files. Raises ListingError, and the errors of obstore."""
        single = self._single()
        ordered = (
            [single]
            if single is not None
            else without_folders(in_order(self._below(), folder=folder), self._subject)
        )
        for file in ordered:
            writer.write(file)
        writer.flush()
        if not writer.files:
            raise ListingError(nothing_there(self._subject, self._path))
        return single is not None

    def _single(self) -> ListedFile | None:
        if not self._path:
            return None
        try:
            facts = self._head(self._path)
        except FileNotFoundError:
            return None
        # Some tools make an empty object to stand for a folder.
        return self._listed(facts, self._path.rpartition("/")[2]) if facts["size"] else None

    def _below(self) -> Iterator[ListedFile]:
        start = f"{self._path}/" if self._path else ""
        for chunk in self._chunks:
            for facts in chunk:
                yield self._listed(facts, facts["path"].removeprefix(start))
            if self._files > MAX_FILES:
                raise ListingError(too_many(self._subject, self._path))
            self._tell()

    def _listed(self, facts: Facts, path: str) -> ListedFile:
        if not is_file_name(path):
            raise ListingError(odd_name(self._subject, facts["path"]))
        self._files += 1
        self._bytes += facts["size"]
        return ListedFile(path, facts["size"], facts["e_tag"] or "", facts["last_modified"].timestamp())

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._line_at >= PROGRESS_S:
            self._line_at = now
            self._report(self._files, self._bytes)


def without_folders(files: Iterable[ListedFile], store: str) -> Iterator[ListedFile]:
    """Yields the files, which come in their order, without empty ones that stand for a folder. `store`: the
    beginning of a sentence. Raises ListingError for a file that is a folder, too."""
    previous: ListedFile | None = None
    for file in files:
        if previous is not None and file.path.startswith(f"{previous.path}/"):
            if previous.size:
                raise ListingError(both_file_and_folder(store, previous.path))
        elif previous is not None:
            yield previous
        previous = file
    if previous is not None:
        yield previous
