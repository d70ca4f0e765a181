"""Compares the files that a run reads where they lie with the list of its dataset's version, before the ranks
start and with the rights of their account."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import BinaryIO

from trainhub_launch.data.manifests import ListedFile, folder_etag, read_manifest
from trainhub_launch.data.store_errors import changed, missing
from trainhub_launch.data.stores import Store, folder_store
from trainhub_node.data import account_process
from trainhub_node.supervisor.gang import Gang, PreparationFailed

# Each asks a file server by itself.
THREADS, SLICE = 16, 100


def check_lists(gang: Gang) -> None:
    """Raises PreparationFailed for a file that is not the listed one any more, and StopRequested."""
    for name, listed in sorted(gang.order["lists"].items()):
        path = gang.input_paths[name]
        with open(gang.folder.manifest(listed["manifest"]), "rb") as stream:
            work = partial(_compare, stream, path, listed["is_file"])
            try:
                for record in account_process.lines_of(gang, work):
                    if record.get("problem"):
                        raise PreparationFailed(
                            "data", f"Input {name} on node {gang.terms['node']}: {record['problem']}"
                        )
            except TimeoutError as error:
                raise PreparationFailed(
                    "data",
                    f"Input {name}: {path} on node {gang.terms['node']} {account_process.no_answer()}",
                ) from error
        gang.log(f"Input {name}: its files are those of the list.")


def _compare(stream: BinaryIO, root: str, is_file: bool, say: Callable[[Mapping[str, object]], None]) -> None:
    """Says the first difference as a sentence, and something now and then while there is none."""
    check = partial(_first_difference, root, is_file)
    files = read_manifest(stream)
    with ThreadPoolExecutor(THREADS) as threads:
        while slices := [part for _ in range(THREADS) if (part := list(islice(files, SLICE)))]:
            problem = next(filter(None, threads.map(check, slices)), "")
            say({"problem": problem})
            if problem:
                return


def _first_difference(root: str, is_file: bool, files: list[ListedFile]) -> str:
    store = folder_store(root)
    return next(filter(None, (_difference(store, root if is_file else "", file) for file in files)), "")


def _difference(store: Store, single: str, file: ListedFile) -> str:
    path = single or f"{store.settings['path']}/{file.path}"
    try:
        facts = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return missing(store, file.path)
    except OSError as error:
        return f"{path} cannot be read ({error.strerror})."
    if folder_etag(facts.st_mtime_ns, facts.st_size) != file.etag:
        return changed(store, file.path, is_listed=True)
    return ""
