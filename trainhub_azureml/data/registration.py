"""Datasets on the hub: registered, and looked up by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainhub_azureml.data.datasets import (
    NAME_TAG,
    TABLE_TAG,
    AbstractDataset,
    FileDataset,
    Registration,
    TabularDataset,
)
from trainhub_azureml.data.datastore import TREE
from trainhub_azureml.data.dry_run_data import add_dataset, added_dataset, added_datasets
from trainhub_azureml.data.hub_data import HubData, hub_datastore
from trainhub_azureml.data.publication import hub_name, publish
from trainhub_azureml.data.sources import StorePath, WebAddress, folder_path
from trainhub_azureml.data.store_kinds import HUB, READY
from trainhub_azureml.data.tables import TableFormat
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.notices import warn
from trainhub_azureml.submission.dry_run import is_dry_run
from trainhub_sdk.errors import NotFound

if TYPE_CHECKING:
    from trainhub_azureml.workspace import Workspace
    from trainhub_sdk.records.data import Dataset as HubDataset
    from trainhub_sdk.records.data import DatasetVersion
    from trainhub_sdk.records.data import Datastore as HubDatastore


def register_dataset(
    dataset: AbstractDataset,
    workspace: Workspace,
    name: str,
    description: str | None,
    tags: Mapping[str, Any] | None,
    *,
    may_change: bool,
) -> AbstractDataset:
    """Returns the registered dataset. Raises UserErrorException."""
    if is_dry_run():
        warn(f"The dataset {name} is not registered in a dry run.")
        return add_dataset(dataset, name, description, tags)
    if isinstance(dataset, TabularDataset) and dataset._limit is not None:
        raise UserErrorException("register: the first rows of a table are no dataset; register all of it.")
    hub = HubData(workspace._client())
    store = store_path(dataset)
    if store is not None:
        version = _list_store(hub, hub_name(name), store, may_change=may_change)
    else:
        version = publish_files(hub, dataset, hub_name(name), may_change=may_change)
    texts = {str(key): "" if value is None else str(value) for key, value in (tags or {}).items()}
    hub.describe(version.dataset, description, {**texts, **_own_tags(dataset, name, version.dataset)})
    return get_dataset(hub, name, version.version)


def named_dataset(workspace: Workspace, name: str, number: int | None = None) -> AbstractDataset:
    """Returns a dataset that is registered, or that this dry run would have registered, by default the newest
    version. Raises UserErrorException if there is none."""
    added = added_dataset(name) if number is None else None
    return added or get_dataset(HubData(workspace._client()), name, number)


def get_dataset(hub: HubData, name: str, number: int | None = None) -> AbstractDataset:
    """Returns a registered dataset, by default its newest version. Raises UserErrorException if there is
    none."""
    row = hub.dataset(hub_name(name))
    if row is None:
        names = ", ".join(sorted(item.name for item in hub.datasets() if not item.name.endswith(TREE)))
        raise UserErrorException(f"There is no dataset {name} on the hub; there are: {names or 'none'}.")
    return dataset_of_row(hub, row, hub.datastores(), number)


def dataset_of_row(
    hub: HubData, row: HubDataset, datastores: list[HubDatastore], number: int | None = None
) -> AbstractDataset:
    """Raises UserErrorException for a version that does not exist, or has no list of its files."""
    try:
        version = row.newest if number is None else hub.version(row.name, number)
    except NotFound as error:
        raise UserErrorException(f"The dataset {row.name} has no version {number}.", error) from error
    if version is None or version.state != READY:
        state = version.state if version is not None else "not there"
        raise UserErrorException(f"The dataset {row.name} has no list of its files: it is {state}.")
    datastore = next(store for store in datastores if store.name == row.datastore)
    registration = Registration(hub, row, datastore, version.version)
    if TABLE_TAG in row.tags:
        return TabularDataset((), TableFormat.from_text(row.tags[TABLE_TAG]), registration)
    return FileDataset((), registration)


def store_path(dataset: AbstractDataset) -> StorePath | None:
    """Returns the only place of a dataset, with the folder or file that the hub lists there; None if its
    files are on the hub, or come there. Raises UserErrorException for other places, and for several."""
    sources = dataset._sources
    if dataset._registration is not None or all(
        isinstance(source, WebAddress)
        or (isinstance(source, StorePath) and source.datastore._row.kind == HUB)
        for source in sources
    ):
        return None
    if len(sources) > 1 or not isinstance(sources[0], StorePath):
        raise UserErrorException(
            "path: only files on the hub can be put together; make a dataset of each path of another "
            "datastore."
        )
    return sources[0]._replace(path=folder_path(sources[0].path))


def publish_files(
    hub: HubData, dataset: AbstractDataset, name: str, *, may_change: bool = True
) -> DatasetVersion:
    """Returns the version of a dataset on the hub with these files. Raises UserErrorException."""
    registration = dataset._registration
    if registration is not None and registration.datastore.kind != HUB:
        raise UserErrorException(f"register: {dataset.name} is registered already; use it by that name.")
    stores = [source.datastore._row.name for source in dataset._sources if isinstance(source, StorePath)]
    if registration is not None:
        stores = [registration.datastore.name]
    datastore = stores[0] if stores else hub_datastore(hub, hub.datastores(), is_dry_run=False).name
    return publish(hub, datastore, name, dataset._files(), may_change=may_change)


def _list_store(hub: HubData, name: str, store: StorePath, *, may_change: bool) -> DatasetVersion:
    row = hub.dataset(name)
    datastore = store.datastore._row.name
    if row is None:
        return hub.wait_until_listed(hub.make_dataset(name, datastore, store.path))
    if (row.datastore, row.path) != (datastore, store.path):
        raise UserErrorException(
            f"The hub has a dataset {name} already, of {row.path or 'all'} in {row.datastore}, and so are "
            "all its versions: give another name."
        )
    if row.newest is not None and row.newest.state == READY and not may_change:
        return row.newest
    return hub.wait_until_listed(hub.refresh(name))


def _own_tags(dataset: AbstractDataset, name: str, stored_name: str) -> dict[str, Any]:
    table = json.dumps(dataset._table.to_json()) if dataset._table is not None else None
    # The value None removes a tag.
    return {TABLE_TAG: table, NAME_TAG: name if name != stored_name else None}


def registered_datasets(workspace: Workspace) -> Mapping[str, AbstractDataset]:
    """Returns the newest version of each dataset that has one, by name; in a dry run also those that it would
    have registered."""
    client = workspace._hub()
    if client is None:
        return added_datasets()
    hub = HubData(client)
    datastores = hub.datastores()
    rows = (row for row in hub.datasets() if not row.name.endswith(TREE))
    ready = (row for row in rows if row.newest is not None and row.newest.state == READY)
    datasets = (dataset_of_row(hub, row, datastores) for row in ready)
    return {**{str(dataset.name): dataset for dataset in datasets}, **added_datasets()}
