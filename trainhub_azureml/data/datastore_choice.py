"""Which datastore of the hub a name of the SDK v1 means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainhub_azureml.data.hub_data import HubData, hub_datastore
from trainhub_azureml.data.store_kinds import FOLDER
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.notices import warn
from trainhub_sdk.records.data import Datastore as HubDatastore

if TYPE_CHECKING:
    from trainhub_azureml.local_files.mapping import DatastoreMapping, NameMapping

# Those that every workspace of Azure has.
BUILT_IN = ("workspaceblobstore", "workspacefilestore", "workspaceartifactstore", "workspaceworkingdirectory")


def choose_datastore(
    hub: HubData | None, name: str, mapping: NameMapping, *, is_dry_run: bool
) -> HubDatastore:
    """Returns the datastore of the hub: by the mapping, the one of this name, or, for the names that each
    workspace of Azure has, the one for uploaded files. `hub`: None in a dry run without one. Raises
    UserErrorException."""
    entry = mapping.datastore_for(name)
    if hub is None:
        warn(f"No hub was asked for the datastore {name}.")
        return HubDatastore(name=entry.use if entry is not None and entry.use else name)
    rows = hub.datastores()
    if entry is not None:
        return _mapped(hub, name, entry, rows, is_dry_run=is_dry_run)
    same = next((row for row in rows if row.name.lower() == name.lower()), None)
    if same is not None:
        return same
    if name.lower() in BUILT_IN:
        return hub_datastore(hub, rows, is_dry_run=is_dry_run)
    raise UserErrorException(
        f"There is no datastore {name} on the hub; there are: {_names(rows)}. Add it on the page Data, or "
        f'map it by [datastore."{name}"] in trainhub-azureml.toml.'
    )


def _mapped(
    hub: HubData, name: str, entry: DatastoreMapping, rows: Sequence[HubDatastore], *, is_dry_run: bool
) -> HubDatastore:
    if entry.use:
        row = next((row for row in rows if row.name == entry.use), None)
        if row is None:
            raise UserErrorException(
                f'[datastore."{name}"] in trainhub-azureml.toml uses {entry.use}, which is no datastore of '
                f"the hub; there are: {_names(rows)}."
            )
        return row
    existing = next((row for row in rows if row.kind == FOLDER and row.path == entry.path), None)
    if existing is not None:
        return existing
    free = next(text for text in _numbered(name) if all(row.name != text for row in rows))
    if is_dry_run:
        return HubDatastore(name=free, kind=FOLDER, path=entry.path)
    made = hub.make_datastore(free, FOLDER, path=entry.path)
    warn(f"The datastore {free} was made on the hub, for the folder {entry.path} of its nodes.")
    return made


def _numbered(name: str) -> Sequence[str]:
    return [name, *(f"{name}-{number}" for number in range(2, 300))]


def _names(rows: Sequence[HubDatastore]) -> str:
    return ", ".join(row.name for row in rows) or "none"
