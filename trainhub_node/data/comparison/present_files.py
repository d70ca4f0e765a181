"""Finds what a store has now in place of the files of a dataset's version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainhub_launch.data.store_errors import explain, explain_absence
from trainhub_launch.data.stores import Store
from trainhub_node.data import listing
from trainhub_node.data.comparison.changed_files import ChangedFiles
from trainhub_node.data.errors import DataError
from trainhub_node.data.remote_file import RemoteFile

if TYPE_CHECKING:
    from obstore.store import ObjectStore


def find_present(
    client: ObjectStore, store: Store, files: list[RemoteFile], *, path: str, scope: str, secret: str
) -> tuple[list[RemoteFile], ChangedFiles]:
    """Returns the files as they are now, without those that are gone, and what is different from `files`,
    which are those of the version. What else is there is left out. Raises DataError."""
    try:
        now = _named(listing.iterate_files(client, store, path, scope), {file.key for file in files})
    except listing.STORE_ERRORS as error:
        raise DataError(explain(error, store, path, secret)) from error
    changes = ChangedFiles()
    for file in files:
        present = now.get(file.key)
        if present is None or present.identity != file.identity:
            changes.add(file.path, is_absent=present is None)
    if not now:
        raise DataError(explain_absence(store))
    return [now[file.key] for file in files if file.key in now], changes


def _named(files: Iterable[RemoteFile], keys: set[str]) -> dict[str, RemoteFile]:
    return {file.key: file for file in files if file.key in keys}
