"""Tests a folder, or lists its files, with the rights of the account that runs would have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

from trainhub_launch.data.file_names import MAX_FILES, nothing_there, too_many
from trainhub_launch.data.file_order import in_order
from trainhub_launch.data.manifests import ListedFile, ManifestWriter, folder_etag
from trainhub_launch.data.store_errors import subject
from trainhub_launch.data.stores import folder_store
from trainhub_node.data import account_process, input_folders
from trainhub_node.probing import folder_reading
from trainhub_node.supervisor.gang import Gang, PreparationFailed

# Links that are not listed and are named.
MAX_NAMED = 5
NANOSECONDS = 1e9

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.data.account_process import Record

Report = Callable[[int, int], None]


def test(gang: Gang, path: str) -> Record:
    """Returns how much was read, and how fast. Raises PreparationFailed, and StopRequested."""
    _require(gang, path)
    result: Record = {}
    for record in _records(gang, path, partial(folder_reading.read, path)):
        result = record.get("done", {})
    return result


def list_files(gang: Gang, path: str, output: str, report: Report) -> Record:
    """Writes the list to `output`. Returns its number of files, whether it is one file alone, and a note.
    Raises PreparationFailed, and StopRequested."""
    _require(gang, path)
    walk = _Walk(gang, path, report)
    with open(output, "wb") as file:
        writer = ManifestWriter(file)
        for listed in in_order(walk.files(), folder=gang.folder.path):
            writer.write(listed)
        writer.flush()
    if not writer.files:
        raise PreparationFailed("data", nothing_there(subject(folder_store(path)), ""))
    return {"files": writer.files, "is_file": walk.is_file, "note": walk.note}


class _Walk:
    """The files of a folder, as a process of the account of runs finds them."""

    def __init__(self, gang: Gang, path: str, report: Report) -> None:
        self.is_file = False
        self._gang = gang
        self._path = path
        self._report = report
        self._files = self._bytes = 0
        self._links: list[str] = []
        self._link_count = 0

    def files(self) -> Iterator[ListedFile]:
        for record in _records(self._gang, self._path, partial(folder_reading.walk, self._path)):
            self.is_file = self.is_file or bool(record.get("is_file"))
            self._link_count += len(record.get("links", ()))
            self._links = [*self._links, *record.get("links", ())][:MAX_NAMED]
            for name, size, modified_ns in record.get("files", ()):
                self._files += 1
                self._bytes += size
                yield ListedFile(name, size, folder_etag(modified_ns, size), modified_ns / NANOSECONDS)
            if self._files > MAX_FILES:
                raise PreparationFailed("data", too_many(subject(folder_store(self._path)), ""))
            self._report(self._files, self._bytes)

    @property
    def note(self) -> str:
        if not self._link_count:
            return ""
        more = f" and {self._link_count - len(self._links):,} more" if self._link_count > MAX_NAMED else ""
        return (
            f"Links to folders, out of the folder or to nothing are not in the list: {', '.join(self._links)}"
            f"{more}."
        )


def _require(gang: Gang, path: str) -> None:
    problem = input_folders.look_at(gang, path, is_walked=True)["problem"]
    if problem == input_folders.MISSING:
        problem += ", or check the path"
    if problem:
        raise PreparationFailed("data", f"{path} {problem}.")


def _records(gang: Gang, path: str, work: Callable[[folder_reading.Say], None]) -> Iterator[Record]:
    """Yields what the work says. Raises PreparationFailed when that is a problem, and StopRequested."""
    records = account_process.lines_of(gang, work, dumps=_dumps, loads=json.loads)
    try:
        for record in records:
            if record.get("problem"):
                raise PreparationFailed("data", f"{path} {record['problem']}.")
            yield record
    except TimeoutError as error:
        raise PreparationFailed("data", f"{path} {account_process.no_answer()}") from error


def _dumps(record: Record) -> bytes:
    return json.dumps(record).encode()
