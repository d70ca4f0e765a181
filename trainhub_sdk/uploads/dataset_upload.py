"""Uploads files of this machine as a version of a dataset. What arrived before a break is not sent again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trainhub_sdk.addresses import escape
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import HubRefused, HubUnreachable, NotFound, UploadError
from trainhub_sdk.records.data import DatasetVersion
from trainhub_sdk.transfers import PAUSE_S, TRIES
from trainhub_sdk.uploads.file_pieces import (
    NewFile,
    OnBytes,
    changed,
    describe_file,
    ignore_progress,
    is_at_another_offset,
    send_pieces,
)
from trainhub_sdk.uploads.local_files import local_files

# The datastore for uploaded files, as the page Data names it.
DATASTORE, KIND = "uploads", "hub"
MAX_NAMED = 1000


def upload_folder(
    api: ApiConnection,
    name: str,
    folder: str | Path,
    datastore: str = "",
    on_bytes: OnBytes = ignore_progress,
) -> DatasetVersion:
    """Makes the files of a folder, or one file, the next version of the dataset `name`. Without such a
    dataset it is made in `datastore`, by default the workspace's first one for uploaded files. `on_bytes`
    gets the length of each piece that was sent. Returns the version. Raises UploadError, HubUnreachable and
    HubRefused."""
    files = local_files(folder)
    try:
        api.get(f"/api/v1/datasets/{escape(name)}/")
    except NotFound:
        where = datastore or _find_datastore(api)
        api.call("POST", "/api/v1/datasets/", {"name": name, "datastore": where, "path": ""})
    contents = (describe_file(file, path) for path, file in files.items())
    return upload_files(api, name, contents, on_bytes)


def upload_files(
    api: ApiConnection,
    name: str,
    files: Iterator[NewFile] | Sequence[NewFile],
    on_bytes: OnBytes = ignore_progress,
) -> DatasetVersion:
    """Makes the next version of the dataset `name`, of files uploaded to the hub, with exactly these files.
    What the workspace has already is not sent. Returns the version. Raises UploadError, HubUnreachable and
    HubRefused."""
    answer = api.call("POST", f"/api/v1/datasets/{escape(name)}/uploads/")
    address = f"/api/v1/datasets/{escape(name)}/versions/{int(answer['version'])}/upload/"
    count, batch = 0, {}
    for file in files:
        batch[file.path] = file
        count += 1
        if len(batch) == MAX_NAMED:
            _Batch(api, address, batch, on_bytes).send()
            batch = {}
    if batch:
        _Batch(api, address, batch, on_bytes).send()
    return DatasetVersion.from_json(api.call("POST", f"{address}finish/", {"files": count}))


class _Batch(NamedTuple):
    """Files that the hub is asked about at once."""

    api: ApiConnection
    address: str
    files: Mapping[str, NewFile]
    on_bytes: OnBytes

    def send(self) -> None:
        """Sends what the hub lacks, and goes on after a break where it was."""
        tries, left = 0, self._gaps()
        while left:
            is_cut = not self._send_all(left)
            before, left = left, self._gaps()
            if left and not is_cut:
                # What was sent is confirmed by its hash: a file that was changed meanwhile is missing again.
                raise changed(left[0][1])
            tries = tries + 1 if is_cut and left == before else 0
            if tries == TRIES:
                raise HubUnreachable(self.api.url, f"the connection broke {tries} times at {left[0][1].path}")

    def _gaps(self) -> list[tuple[int, NewFile]]:
        """Returns the files that the hub lacks, with the number of bytes that it has of each."""
        rows: list[dict[str, Any]] = []
        for file in self.files.values():
            facts = {**file._asdict(), "local": None}
            rows.append({key: value for key, value in facts.items() if value is not None})
        answer = self.api.call("POST", f"{self.address}files/", {"files": rows})
        for refusal in answer["refused"]:
            raise UploadError(f"The hub does not take {refusal['path']}: {refusal['reason']}.")
        return [(int(item["offset"]), self.files[item["path"]]) for item in answer["missing"]]

    def _send_all(self, gaps: Sequence[tuple[int, NewFile]]) -> bool:
        """Returns False as soon as the connection breaks."""
        for offset, file in gaps:
            try:
                self._send(file, offset)
            except HubUnreachable:
                time.sleep(PAUSE_S)
                return False
            except HubRefused as error:
                if not is_at_another_offset(error):
                    raise
                return False
        return True

    def _send(self, file: NewFile, offset: int) -> None:
        if not file.local:
            raise UploadError(f"The hub has lost the content of {file.path}: upload it again.")
        target = f"{self.address}files/{escape(file.path)}"
        query = {"size": file.size, "modified_at": file.modified_at}
        send_pieces(self.api, target, file, offset, on_bytes=self.on_bytes, query=query)


def _find_datastore(api: ApiConnection) -> str:
    """Returns a datastore for uploaded files, which is made if there is none."""
    rows = api.pages("/api/v1/datastores/")
    existing = next((str(row["name"]) for row in rows if row["kind"] == KIND), "")
    if existing:
        return existing
    return str(api.call("POST", "/api/v1/datastores/", {"name": DATASTORE, "kind": KIND})["name"])
