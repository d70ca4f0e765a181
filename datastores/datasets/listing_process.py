"""Lists the files of a store into a manifest: `python -m datastores.datasets.listing_process`.

A process of its own of the worker: the library starts threads, and this one can be ended. Reads a request
(JSON) from standard input, and writes lines of JSON: how far it is, and at the end `done`, or `error`
with a sentence."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import obstore.store
from obstore.exceptions import BaseError

from datastores.datasets.file_order import in_order
from trainhub_launch.data.file_names import (
    MAX_FILES,
    both_file_and_folder,
    is_file_name,
    nothing_there,
    odd_name,
    too_many,
)
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_launch.data.store_errors import explain, subject
from trainhub_launch.data.stores import Store, open_store
from trainhub_launch.json_types import JsonValue

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

CHUNK = 1000
PROGRESS_S = 1.0
# obstore raises some of Python's own errors in place of its own.
STORE_ERRORS = (BaseError, FileNotFoundError, PermissionError, ValueError)


class ListingError(Exception):
    """The files cannot be listed; the message is a sentence."""


class _Listing:
    """Of the files of `store` at `path`."""

    def __init__(self, client: ObjectStore, store: Store, path: str) -> None:
        self._client = client
        self._subject = subject(store)
        self._path = path
        self._files = self._bytes = 0
        self._line_at = time.monotonic()

    def write(self, writer: ManifestWriter) -> bool:
        """Writes all files. Returns whether there is only one, which is at `path` itself. Raises
        ListingError, and the errors of obstore."""
        single = self._single()
        for file in (
            [single] if single is not None else without_folders(in_order(self._below()), self._subject)
        ):
            writer.write(file)
        writer.flush()
        if not writer.files:
            raise ListingError(nothing_there(self._subject, self._path))
        return single is not None

    def _single(self) -> ListedFile | None:
        if not self._path:
            return None
        try:
            facts = obstore.head(self._client, self._path)
        except FileNotFoundError:
            return None
        # Some tools make an empty object to stand for a folder.
        return self._listed(facts, self._path.rpartition("/")[2]) if facts["size"] else None

    def _below(self) -> Iterator[ListedFile]:
        start = f"{self._path}/" if self._path else ""
        for chunk in obstore.list(self._client, self._path or None, chunk_size=CHUNK):
            for facts in chunk:
                yield self._listed(facts, facts["path"].removeprefix(start))
            if self._files > MAX_FILES:
                raise ListingError(too_many(self._subject, self._path))
            self._tell()

    def _listed(self, facts: ObjectMeta, path: str) -> ListedFile:
        if not is_file_name(path):
            raise ListingError(odd_name(self._subject, facts["path"]))
        self._files += 1
        self._bytes += facts["size"]
        return ListedFile(path, facts["size"], facts["e_tag"] or "", facts["last_modified"].timestamp())

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._line_at >= PROGRESS_S:
            self._line_at = now
            _say(files=self._files, bytes=self._bytes)


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


def main() -> None:
    request: dict[str, Any] = json.load(sys.stdin)
    store, path, secret = Store.from_json(request["store"]), request["path"], request["secret"]
    try:
        client = open_store(obstore.store, store, secret, {"proxy_url": request["proxy"]})
        with Path(request["output"]).open("wb") as output:
            writer = ManifestWriter(output)
            is_file = _Listing(client, store, path).write(writer)
    except ListingError as error:
        _say(error=str(error))
    except STORE_ERRORS as error:
        _say(error=explain(error, store, path, secret))
    else:
        starts: list[JsonValue] = [*writer.starts]
        _say(done={"files": writer.files, "bytes": writer.bytes, "is_file": is_file, "starts": starts})


def _say(**line: JsonValue) -> None:
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
