"""Lists what a store has below a path, and refuses names that cannot be files on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError

from trainhub_launch.data.file_names import (
    MAX_FILES,
    both_file_and_folder,
    is_file_name,
    nothing_there,
    odd_name,
    too_many,
)
from trainhub_launch.data.manifests import ListedFile, content_sha256, read_manifest
from trainhub_launch.data.store_errors import explain, subject
from trainhub_launch.data.stores import HTTP, HUB, Store
from trainhub_node.data.errors import DataError
from trainhub_node.data.remote_file import RemoteFile

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

# obstore raises some of Python's own errors in place of its own.
STORE_ERRORS = (BaseError, FileNotFoundError, PermissionError, ValueError)
CHUNK = 1000


def list_files(client: ObjectStore, store: Store, path: str, scope: str, secret: str) -> list[RemoteFile]:
    """Returns the file at `path`, or all files below it. `scope`: stands in the identity of each. Raises
    DataError."""
    try:
        return _checked(iterate_files(client, store, path, scope), store, path)
    except STORE_ERRORS as error:
        raise DataError(explain(error, store, path, secret)) from error


def iterate_files(client: ObjectStore, store: Store, path: str, scope: str) -> Iterator[RemoteFile]:
    """Yields the file at `path`, or all below it, whatever their names are. Raises DataError, and
    STORE_ERRORS."""
    prefix = scope + store.identity
    single = _single(client, store, path)
    if single is None:
        yield from _below(client, path, prefix)
    else:
        yield _remote(single, single["path"], path.rsplit("/", 1)[-1], prefix)


def listed_files(manifest: str, store: Store, path: str, scope: str, *, is_file: bool) -> list[RemoteFile]:
    """Returns the files of a dataset's version, from the list at `manifest`. `is_file`: it has the file
    at `path` alone."""
    prefix, start = scope + store.identity, f"{path}/" if path else ""
    with open(manifest, "rb") as stream:
        if store.kind == HUB:
            return [_of_hub(file, prefix) for file in read_manifest(stream)]
        return [
            RemoteFile(path if is_file else start + name, name, size, etag, modified_at, prefix)
            for name, size, etag, modified_at in read_manifest(stream)
        ]


def _of_hub(file: ListedFile, prefix: str) -> RemoteFile:
    """Raises DataError for a list that does not name the content."""
    sha256 = content_sha256(file.etag)
    if not sha256:
        raise DataError(f"The list of the hub does not tell the content of {file.path}: upload it again.")
    return RemoteFile(sha256, file.path, file.size, file.etag, file.modified_at, prefix, sha256)


def _single(client: ObjectStore, store: Store, path: str) -> ObjectMeta | None:
    """Returns the object that has exactly this name, None if there is none."""
    if not path:
        if store.kind == HTTP:
            raise DataError(
                f"A web server cannot be asked which files it has: name a file of {store} as path."
            )
        return None
    try:
        facts = obstore.head(client, path)
    except FileNotFoundError:
        if store.kind == HTTP:
            raise
        return None
    # Some tools make an empty object to stand for a folder.
    return None if facts["size"] == 0 and store.kind != HTTP else facts


def _below(client: ObjectStore, path: str, prefix: str) -> Iterator[RemoteFile]:
    start = f"{path}/" if path else ""
    for chunk in obstore.list(client, path or None, chunk_size=CHUNK):
        for facts in chunk:
            key = facts["path"]
            yield _remote(facts, key, key.removeprefix(start), prefix)


def _remote(facts: ObjectMeta, key: str, path: str, prefix: str) -> RemoteFile:
    etag = facts["e_tag"] or ""
    return RemoteFile(key, path, facts["size"], etag, facts["last_modified"].timestamp(), prefix)


def _checked(objects: Iterator[RemoteFile], store: Store, path: str) -> list[RemoteFile]:
    files: dict[str, RemoteFile] = {}
    folders: set[str] = set()
    for file in objects:
        if not is_file_name(file.path):
            raise DataError(odd_name(subject(store), file.key))
        files[file.path] = file
        if len(files) > MAX_FILES:
            raise DataError(too_many(subject(store), path))
        parent = file.path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    for name in folders & files.keys():
        # An empty object that stands for a folder.
        if files.pop(name).size:
            raise DataError(both_file_and_folder(subject(store), name))
    if not files:
        raise DataError(nothing_there(subject(store), path))
    return sorted(files.values(), key=lambda file: file.path)
