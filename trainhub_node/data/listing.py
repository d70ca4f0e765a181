"""Lists what a store has below a path, and refuses names that cannot be files on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError

from trainhub_launch.data.store_errors import explain, subject
from trainhub_launch.data.stores import HTTP, Store
from trainhub_node.data.errors import DataError
from trainhub_node.data.remote_file import RemoteFile

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

# obstore raises some of Python's own errors in place of its own.
STORE_ERRORS = (BaseError, FileNotFoundError, PermissionError, ValueError)
CHUNK = 1000
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 3000
# Far more than anybody can use as single files.
MAX_FILES = 5_000_000


def list_files(client: ObjectStore, store: Store, path: str, scope: str, secret: str) -> list[RemoteFile]:
    """Returns the file at `path`, or all files below it. `scope`: stands in the identity of each. Raises
    DataError."""
    prefix = scope + store.identity
    try:
        single = _single(client, store, path)
        if single is not None:
            name = path.rsplit("/", 1)[-1]
            return [_remote(single, single["path"], name, prefix)]
        return _checked(_below(client, path, prefix), store, path)
    except STORE_ERRORS as error:
        raise DataError(explain(error, store, path, secret)) from error


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
        _check_name(file, store)
        files[file.path] = file
        if len(files) > MAX_FILES:
            raise DataError(
                f"{subject(store)} has more than {MAX_FILES:,} files below {path or 'its top'}: name a "
                "folder below it, or pack them into archives."
            )
        parent = file.path.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    for name in folders & files.keys():
        # An empty object that stands for a folder.
        if files.pop(name).size:
            raise DataError(
                f"{subject(store)} has both a file {name} and files below {name}/, which no disk can "
                "have: rename one."
            )
    if not files:
        raise DataError(
            f"{subject(store)} has nothing at {path or 'its top'}: check the path and its capital letters."
        )
    return sorted(files.values(), key=lambda file: file.path)


def _check_name(file: RemoteFile, store: Store) -> None:
    parts = file.path.split("/")
    is_odd = "\0" in file.path or any(part in ("", ".", "..") for part in parts)
    sizes = [len(part.encode(errors="surrogateescape")) for part in parts]
    if is_odd or max(sizes) > MAX_NAME_BYTES or sum(sizes) + len(sizes) > MAX_PATH_BYTES:
        raise DataError(
            f"{subject(store)} has an object {file.key!r:.300}, whose name cannot be a file's: rename it, or "
            "name a folder without it."
        )
