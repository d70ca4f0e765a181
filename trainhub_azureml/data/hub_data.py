"""The requests of a hub about datastores and datasets that the calls of the SDK v1 need."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainhub_azureml.data.store_kinds import HUB, LISTING, READY
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.notices import warn
from trainhub_sdk.addresses import escape
from trainhub_sdk.errors import HubRefused, NotAllowed, NotFound, UploadError
from trainhub_sdk.records.data import Dataset as HubDataset
from trainhub_sdk.records.data import DatasetFile, DatasetVersion
from trainhub_sdk.records.data import Datastore as HubDatastore
from trainhub_sdk.transfers import download
from trainhub_sdk.uploads.dataset_upload import DATASTORE, upload_files
from trainhub_sdk.uploads.file_pieces import NewFile

if TYPE_CHECKING:
    from trainhub_sdk.client import Client

MAX_FILES = 1000
LISTING_S, MAX_PAUSE_S = 3600.0, 5.0


class HubData:
    """All methods raise HubUnreachable and HubRefused."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._api = client.api

    def datastores(self) -> list[HubDatastore]:
        return self._client.datastores()

    def make_datastore(self, name: str, kind: str, **fields: Any) -> HubDatastore:
        data = {"name": name, "kind": kind, **fields}
        return HubDatastore.from_json(self._api.call("POST", "/api/v1/datastores/", data))

    def change_datastore(self, name: str, **fields: str) -> None:
        self._api.call("PATCH", f"/api/v1/datastores/{escape(name)}/", fields)

    def has_secret(self, name: str) -> bool:
        """Returns whether the token's workspace, or its person, has a secret of this name."""
        try:
            self._api.get(f"/api/v1/secrets/{escape(name)}/")
        except NotFound:
            return False
        return True

    def store_secret(self, name: str, value: str) -> None:
        """Stores a secret of the workspace. Raises UserErrorException for somebody who may not."""
        try:
            self._api.call("PUT", f"/api/v1/secrets/{escape(name)}/", {"value": value, "scope": "workspace"})
        except NotAllowed as error:
            raise UserErrorException(
                f"The hub does not store the credentials: {error} Ask an owner to store the secret {name} "
                "and to add the datastore on the page Data, and use Datastore.get.",
                error,
            ) from error

    def datasets(self) -> list[HubDataset]:
        return self._client.datasets()

    def dataset(self, name: str) -> HubDataset | None:
        """Returns a dataset with its newest version, None if there is none of this name."""
        try:
            return HubDataset.from_json(self._api.get(f"/api/v1/datasets/{escape(name)}/"))
        except NotFound:
            return None

    def version(self, name: str, number: int) -> DatasetVersion:
        """Raises NotFound."""
        return DatasetVersion.from_json(self._api.get(_version_path(name, number)))

    def files(self, name: str, number: int) -> Iterator[DatasetFile]:
        """Yields the files of a version that is ready."""
        start = 0
        while True:
            path = f"{_version_path(name, number)}files/"
            page = self._api.get(path, start=start, count=MAX_FILES)
            yield from map(DatasetFile.from_json, page["files"])
            start += len(page["files"])
            if not page["files"] or start >= page["count"]:
                return

    def download(self, name: str, number: int, path: str, target: str) -> None:
        """Writes a file that the hub keeps to the path `target`."""
        download(self._api, f"{_version_path(name, number)}files/{escape(path)}", Path(target))

    def make_dataset(self, name: str, datastore: str, path: str = "") -> DatasetVersion:
        """Makes a dataset. Returns its first version, whose files are listed or uploaded next."""
        data = {"name": name, "datastore": datastore, "path": path}
        return DatasetVersion.from_json(self._api.call("POST", "/api/v1/datasets/", data))

    def refresh(self, name: str) -> DatasetVersion:
        """Has the files of a store listed again, as the next version."""
        return DatasetVersion.from_json(self._api.call("POST", f"/api/v1/datasets/{escape(name)}/refresh/"))

    def describe(self, name: str, description: str | None, tags: Mapping[str, str]) -> None:
        fields = {"tags": dict(tags), **({} if description is None else {"description": description})}
        if tags or description is not None:
            self._api.call("PATCH", f"/api/v1/datasets/{escape(name)}/", fields)

    def wait_until_listed(self, version: DatasetVersion) -> DatasetVersion:
        """Returns a version whose files are listed. Raises UserErrorException if they cannot be listed."""
        end, pause_s = time.monotonic() + LISTING_S, 0.1
        while version.state == LISTING and time.monotonic() < end:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)
            version = self.version(version.dataset, version.version)
        if version.state != READY:
            reason = version.failure or f"it is {version.state}."
            raise UserErrorException(f"The files of the dataset {version.dataset} are not listed: {reason}")
        return version

    def upload(self, dataset: str, files: Sequence[NewFile]) -> DatasetVersion:
        """Makes the next version of a dataset on the hub, with exactly these files; what the workspace has
        already is not sent. Returns it. Raises UserErrorException for a file that the hub does not take."""
        try:
            return upload_files(self._api, dataset, files)
        except UploadError as error:
            raise UserErrorException(str(error), error) from error


def hub_datastore(hub: HubData, rows: Sequence[HubDatastore], *, is_dry_run: bool) -> HubDatastore:
    """Returns the datastore of the kind hub, which is made if there is none, except in a dry run. Raises
    UserErrorException."""
    existing = next((row for row in rows if row.kind == HUB), None)
    if existing is not None:
        return existing
    if is_dry_run:
        return HubDatastore(name=DATASTORE, kind=HUB)
    try:
        made = hub.make_datastore(DATASTORE, HUB)
    except HubRefused as error:
        raise UserErrorException(
            f"The hub has no datastore for uploaded files, and does not make one: {error} Ask a contributor "
            "to make one of the kind hub on the page Data.",
            error,
        ) from error
    warn(f"The datastore {DATASTORE} was made on the hub, which keeps what you upload.")
    return made


def _version_path(name: str, number: int) -> str:
    return f"/api/v1/datasets/{escape(name)}/versions/{number}/"
