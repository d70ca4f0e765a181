"""Datasets of the hub: which files a version has, and new versions of files that were uploaded."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainhub_azureml.data.data_files import DataFile, Elsewhere, OnDisk, OnHub, Origin, new_file
from trainhub_azureml.data.hub_data import HubData
from trainhub_azureml.data.store_kinds import FOLDER, HUB, READY
from trainhub_azureml.exceptions import UserErrorException

if TYPE_CHECKING:
    from trainhub_sdk.records.data import Dataset as HubDataset
    from trainhub_sdk.records.data import DatasetFile, DatasetVersion
    from trainhub_sdk.records.data import Datastore as HubDatastore
    from trainhub_sdk.uploads.file_pieces import NewFile

MAX_NAME = 100


def hub_name(*parts: str) -> str:
    """Returns a name that the hub takes: names of the SDK v1 may have blanks and other characters."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(filter(None, parts))).lstrip("._-")
    return name[:MAX_NAME] or "data"


def version_files(hub: HubData, datastore: HubDatastore, dataset: HubDataset, number: int) -> list[DataFile]:
    """Returns the files of a version, with their paths below the dataset."""
    rows = hub.files(dataset.name, number)
    return [
        DataFile(row.path, _origin(datastore, dataset, number, row), row.size, _sha256(datastore, row))
        for row in rows
    ]


def publish(
    hub: HubData, datastore: str, name: str, files: Iterable[DataFile], *, may_change: bool = True
) -> DatasetVersion:
    """Returns the version of a dataset on the hub that has exactly these files: the newest one, or the next
    one, which is made. Raises UserErrorException if there are no files, if the hub has such a dataset of
    other kind, and unless `may_change` if it has other files."""
    dataset = hub.dataset(name)
    if dataset is not None and dataset.datastore != datastore:
        raise UserErrorException(
            f"The hub has a dataset {name} already, with files of the datastore {dataset.datastore}: give "
            "another name."
        )
    with tempfile.TemporaryDirectory() as folder:
        new = [new_file(hub, file, folder) for file in files]
        if not new:
            raise UserErrorException(f"The dataset {name} would have no files.")
        newest = dataset.newest if dataset is not None else None
        if newest is not None and newest.state == READY:
            if _is_same(hub, newest, new):
                return newest
            if not may_change:
                raise UserErrorException(
                    f"The hub has a dataset {name} already, with other files: give create_new_version=True, "
                    "or another name."
                )
        if dataset is None:
            hub.make_dataset(name, datastore)
        return hub.upload(name, new)


def _is_same(hub: HubData, version: DatasetVersion, files: list[NewFile]) -> bool:
    if version.files != len(files):
        return False
    listed = {(row.path, row.etag.strip('"')) for row in hub.files(version.dataset, version.version)}
    return listed == {(file.path, file.sha256) for file in files}


def _origin(datastore: HubDatastore, dataset: HubDataset, number: int, row: DatasetFile) -> Origin:
    if datastore.kind == HUB:
        return OnHub(dataset.name, number, row.path)
    path = os.path.join(datastore.path, dataset.path)
    # The list of a dataset of one file has the name of that.
    path = path if is_one_file(dataset, row.path) else os.path.join(path, row.path)
    if datastore.kind == FOLDER and os.path.isfile(path):
        return OnDisk(path)
    return Elsewhere(
        f"The dataset {dataset.name} lies in the datastore {datastore.name} of the kind {datastore.kind}: "
        "read it in a run, or there by its own tools."
    )


def is_one_file(dataset: HubDataset, path: str) -> bool:
    """Returns whether the dataset is the file itself at its path, and not a folder with that file."""
    return bool(dataset.path) and dataset.path.rpartition("/")[2] == path


def _sha256(datastore: HubDatastore, row: DatasetFile) -> str:
    return row.etag.strip('"') if datastore.kind == HUB else ""
