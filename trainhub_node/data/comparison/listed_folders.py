"""Compares the files that a run reads where they lie with the list of its dataset's version, before the ranks
start and with the rights of their account."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import BinaryIO

from trainhub_launch.data.manifests import ListedFile, folder_etag, read_manifest
from trainhub_launch.data.store_errors import changed, explain_absence, missing
from trainhub_launch.data.stores import folder_store
from trainhub_node.data import account_process
from trainhub_node.data.comparison.changed_files import ChangedFiles, report_changes
from trainhub_node.supervisor.gang import Gang, PreparationFailed

# Each asks a file server by itself.
THREADS, SLICE = 16, 100


class UnreadableFile(Exception):
    """A listed file cannot be looked at. The message is a sentence."""


def check_lists(gang: Gang) -> None:
    """Raises PreparationFailed for a file that is not the listed one any more, unless the run goes on with
    that, and StopRequested."""
    for name, listed in sorted(gang.order["lists"].items()):
        changes = _changes(gang, name, listed)
        if changes.count:
            report_changes(gang, name, changes)
        else:
            gang.log(f"Input {name}: its files are those of the list.")


def _changes(gang: Gang, name: str, listed: Mapping[str, object]) -> ChangedFiles:
    path, node = gang.input_paths[name], gang.terms["node"]
    uses_changed = bool(listed.get("uses_changed"))
    changes = ChangedFiles()
    with open(gang.folder.manifest(str(listed["manifest"])), "rb") as stream:
        comparison = _Comparison(path, is_file=bool(listed["is_file"]), uses_changed=uses_changed)
        try:
            for record in account_process.lines_of(gang, partial(comparison.run, stream)):
                if record.get("problem"):
                    raise PreparationFailed("data", f"Input {name} on node {node}: {record['problem']}")
                changes.add_json(record)
        except TimeoutError as error:
            raise PreparationFailed(
                "data", f"Input {name}: {path} on node {node} {account_process.no_answer()}"
            ) from error
    return changes


class _Comparison:
    """Compares what is at `root` with a list. `is_file`: the list has the file at `root` alone;
    `uses_changed`: differences are counted, and the first one does not end it."""

    def __init__(self, root: str, *, is_file: bool, uses_changed: bool) -> None:
        self._store = folder_store(root)
        self._root = root
        self._is_file = is_file
        self._uses_changed = uses_changed

    def run(self, stream: BinaryIO, say: Callable[[Mapping[str, object]], None]) -> None:
        """Says what is different, in counts (see ChangedFiles.to_json) or as a sentence `problem`, and
        something now and then while there is nothing."""
        files = read_manifest(stream)
        is_any_there = False
        with ThreadPoolExecutor(THREADS) as threads:
            while slices := [part for _ in range(THREADS) if (part := list(islice(files, SLICE)))]:
                try:
                    differences = list(chain.from_iterable(threads.map(self._differences, slices)))
                except UnreadableFile as error:
                    say({"problem": str(error)})
                    return
                if differences and not self._uses_changed:
                    say({"problem": self._sentence(*differences[0])})
                    return
                changes = ChangedFiles()
                for path, is_absent in differences:
                    changes.add(path, is_absent=is_absent)
                say(changes.to_json())
                absent = sum(is_absent for _, is_absent in differences)
                is_any_there = is_any_there or absent < sum(map(len, slices))
        if not is_any_there:
            say({"problem": explain_absence(self._store)})

    def _differences(self, files: list[ListedFile]) -> list[tuple[str, bool]]:
        """Returns the path of each file that is not the listed one, and whether it is gone."""
        differences = []
        for file in files:
            path = self._root if self._is_file else f"{self._root}/{file.path}"
            try:
                facts = os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                differences.append((file.path, True))
            except OSError as error:
                raise UnreadableFile(f"{path} cannot be read ({error.strerror}).") from error
            else:
                if folder_etag(facts.st_mtime_ns, facts.st_size) != file.etag:
                    differences.append((file.path, False))
        return differences

    def _sentence(self, path: str, is_absent: bool) -> str:
        return missing(self._store, path) if is_absent else changed(self._store, path, is_listed=True)
