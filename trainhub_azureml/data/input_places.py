"""Where a dataset lies for a run."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from trainhub_azureml.data.data_files import DataFile
from trainhub_azureml.data.datasets import AbstractDataset, Registration
from trainhub_azureml.data.hub_data import HubData
from trainhub_azureml.data.publication import hub_name, is_one_file
from trainhub_azureml.data.registration import publish_files, store_path
from trainhub_azureml.data.sources import StorePath, WebAddress
from trainhub_azureml.data.store_kinds import HUB
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.submission.dry_run import is_dry_run

if TYPE_CHECKING:
    from trainhub_azureml.workspace import Workspace


class InputPlace(NamedTuple):
    """`spec`: an entry of the field `inputs`, without its mode; `kind`: of its datastore, "" if that is not
    known; `id`: of the dataset, "" if it is none of the hub; `below`: the path of its only file below the
    input, "" if it is a folder; `notes`: what was guessed."""

    spec: Mapping[str, Any]
    kind: str
    id: str = ""
    below: str = ""
    notes: tuple[str, ...] = ()


def place_dataset(workspace: Workspace, dataset: AbstractDataset) -> InputPlace:
    """Returns where a dataset lies; files without a dataset of the hub get one, except in a dry run. Raises
    UserErrorException."""
    registration = dataset._registration
    if registration is not None:
        return _registered(registration, dataset)
    store = store_path(dataset)
    if store is not None:
        row = store.datastore._row
        spec = {"datastore": row.name, **({"path": store.path} if store.path else {})}
        return InputPlace(spec, row.kind)
    return _published(workspace, dataset)


def _registered(registration: Registration, dataset: AbstractDataset) -> InputPlace:
    hub, row, number = registration.hub, registration.row, registration.number
    below = ""
    if hub.version(row.name, number).files == 1:
        path = next(hub.files(row.name, number)).path
        is_whole = registration.datastore.kind != HUB and is_one_file(row, path)
        below = "" if is_whole else path
    spec = {"dataset": row.name, "version": number}
    return InputPlace(spec, registration.datastore.kind, dataset.id or "", below)


def _published(workspace: Workspace, dataset: AbstractDataset) -> InputPlace:
    name = hub_name(dataset.name) if dataset.name else _derived_name(dataset)
    if is_dry_run():
        note = f"The hub would make the dataset {name}."
        return InputPlace({"dataset": name}, HUB, "", _only_file(_files_or_none(dataset)), (note,))
    version = publish_files(HubData(workspace._client()), dataset, name)
    spec = {"dataset": name, "version": version.version}
    note = f"The dataset {name}, version {version.version}, has these files."
    below = _only_file(dataset._files()) if version.files == 1 else ""
    return InputPlace(spec, HUB, f"{name}:{version.version}", below, (note,))


def _files_or_none(dataset: AbstractDataset) -> list[DataFile]:
    try:
        return dataset._files()
    except UserErrorException:
        return []  # what is to be uploaded before is not there in a dry run


def _only_file(files: list[DataFile]) -> str:
    return files[0].path if len(files) == 1 else ""


def _derived_name(dataset: AbstractDataset) -> str:
    """Returns a name that is the same for the same places."""
    sources = dataset._sources
    parts = [
        f"{source.datastore._row.name}-{source.path or 'all'}"
        if isinstance(source, StorePath)
        else source.url
        for source in sources
        if isinstance(source, (StorePath, WebAddress))
    ]
    if len(sources) == 1 and isinstance(sources[0], StorePath):
        return hub_name(parts[0].replace("*", ""))
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
    return hub_name(posixpath.basename(parts[0])[:60], digest)
