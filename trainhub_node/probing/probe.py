"""Carries out an order to read a datastore, and brings the result to the hub."""

from __future__ import annotations

import hashlib
import json
import time

from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.probe_work import LIST
from trainhub_node.data.library_process import LibraryProcess, require_library
from trainhub_node.environments.making.hub_upload import HubUpload
from trainhub_node.probing import folder_probe
from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.data.account_process import Record

PROGRESS_S = 2.0
# A test that takes longer has failed; the hub waits a little longer.
TEST_TIMEOUT_S = 100.0
TOO_LONG = (
    f"The store did not answer within {TEST_TIMEOUT_S:.0f} s: check its address, and whether this node "
    "reaches it."
)


def carry_out(gang: Gang) -> None:
    """Raises PreparationFailed, and StopRequested."""
    hub = HubUpload(gang, "probe", "data")
    progress = _ProbeProgress(hub)
    is_list, output = gang.order["probe"]["work"] == LIST, f"{gang.folder.path}/list"
    gang.log("Listing the files." if is_list else "Reading the first files.")
    if gang.input_paths:
        (path,) = gang.input_paths.values()
        result = (
            folder_probe.list_files(gang, path, output, progress.write)
            if is_list
            else folder_probe.test(gang, path)
        )
    else:
        result = _read_store(gang, output, progress)
    if is_list:
        gang.log(f"{result['files']:,} files are listed. {result.get('note', '')}".rstrip())
        answer = json.loads(hub.send_file("list/", output))
        if answer["sha256"] != _sha256(output):
            raise PreparationFailed("data", "The list was damaged on its way to the hub. Try it again.")
        result = {"sha256": answer["sha256"], "is_file": result["is_file"], "note": result.get("note", "")}
    else:
        gang.log(f"{result['bytes']:,} bytes of {result['files']:,} files in {result['seconds']:.1f} s.")
    hub.finish(result)


class _ProbeProgress:
    """Tells the hub how far a list is, at most every PROGRESS_S seconds."""

    def __init__(self, hub: HubUpload) -> None:
        self._hub = hub
        self._next_at = time.monotonic() + PROGRESS_S

    def write(self, files: int, size: int) -> None:
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + PROGRESS_S
            self._hub.post("progress/", {"files": files, "bytes": size})


def _read_store(gang: Gang, output: str, progress: _ProbeProgress) -> Record:
    require_library(gang)
    ((_, item),) = gang.order["downloads"].items()
    download = DataDownload.from_json(item)
    is_list, began_at = gang.order["probe"]["work"] == LIST, time.monotonic()
    last: Record = {}

    def take(facts: Record) -> None:
        if "files" in facts:
            progress.write(facts["files"], facts["bytes"])
        else:
            last.update(facts)

    def check_time() -> None:
        if not is_list and time.monotonic() - began_at > TEST_TIMEOUT_S:
            raise PreparationFailed("data", TOO_LONG)

    request = {
        "work": gang.order["probe"]["work"],
        "store": item["store"],
        "path": download.path,
        "secret": gang.secrets.get(download.secret_key, ""),
        "options": {},
        "output": output,
        "folder": gang.folder.path,
    }
    last_words = LibraryProcess(gang, "probe", request, take, check_time).run()
    if "done" not in last:
        raise PreparationFailed("data", last.get("error") or f"It could not be read: {last_words:.500}")
    done: Record = last["done"]
    return done


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
