"""Datasets: files or tables in datastores, registered on the hub or not."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trainhub_azureml.data.consumption import DatasetConsumptionConfig
from trainhub_azureml.data.data_files import DataFile, fetch, readable_path
from trainhub_azureml.data.data_reference import DOWNLOAD, MOUNT, input_name
from trainhub_azureml.data.mount_context import MountContext
from trainhub_azureml.data.refused_members import RefusedMembers
from trainhub_azureml.data.sources import LocalPath, Source, StorePath, source_files
from trainhub_azureml.data.tables import TableFormat, read_tables
from trainhub_azureml.exceptions import UserErrorException

if TYPE_CHECKING:
    from trainhub_azureml.data.hub_data import HubData
    from trainhub_azureml.workspace import Workspace
    from trainhub_sdk.records.data import Dataset as HubDataset
    from trainhub_sdk.records.data import Datastore as HubDatastore

# Tags that belong to this package.
OWN, NAME_TAG, TABLE_TAG = "azureml.", "azureml.name", "azureml.table"


class Registration(NamedTuple):
    """A version of a dataset on the hub."""

    hub: HubData
    row: HubDataset
    datastore: HubDatastore
    number: int


class AbstractDataset(RefusedMembers):
    """`name`, `version`: None unless it is registered."""

    _table: TableFormat | None = None

    def __init__(self, sources: Sequence[Source], registration: Registration | None = None) -> None:
        self._sources = tuple(sources)
        self._registration = registration
        self.name: str | None = None
        self.version: int | None = None
        self.description: str | None = None
        self.tags: dict[str, str] = {}
        if registration is not None:
            row = registration.row
            self.name, self.version = row.tags.get(NAME_TAG, row.name), registration.number
            self.description = row.description or None
            self.tags = {key: value for key, value in row.tags.items() if not key.startswith(OWN)}

    @property
    def id(self) -> str | None:
        """`NAME:VERSION`, None unless it is registered."""
        return None if self.version is None else f"{self.name}:{self.version}"

    def as_named_input(self, name: str) -> DatasetConsumptionConfig:
        """Returns it as an argument of a run, under a name."""
        return DatasetConsumptionConfig(name, self)

    def register(
        self,
        workspace: Workspace,
        name: str,
        description: str | None = None,
        tags: Mapping[str, Any] | None = None,
        create_new_version: bool = False,
    ) -> AbstractDataset:
        """Registers it under a name. Returns the registered one. Raises UserErrorException if the hub has
        another one of that name, unless `create_new_version`."""
        from trainhub_azureml.data.registration import register_dataset

        return register_dataset(self, workspace, name, description, tags, may_change=create_new_version)

    def _files(self) -> list[DataFile]:
        registration = self._registration
        if registration is None:
            return source_files(self._sources)
        from trainhub_azureml.data.publication import version_files

        return version_files(registration.hub, registration.datastore, registration.row, registration.number)

    @property
    def _hub(self) -> HubData | None:
        if self._registration is not None:
            return self._registration.hub
        stores = (source.datastore for source in self._sources if isinstance(source, StorePath))
        return next((store._hub_data for store in stores), None)

    def _input_name(self) -> str:
        """Returns the name of the input of a run that gets it without a name."""
        paths = (source.path for source in self._sources if isinstance(source, StorePath))
        return input_name(self.name or next(paths, "") or "input")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, version={self.version!r})"


class FileDataset(AbstractDataset):
    """Files of any kind."""

    def as_mount(self, path_on_compute: str | None = None) -> DatasetConsumptionConfig:
        return DatasetConsumptionConfig(self._input_name(), self, MOUNT, path_on_compute)

    def as_download(self, path_on_compute: str | None = None) -> DatasetConsumptionConfig:
        return DatasetConsumptionConfig(self._input_name(), self, DOWNLOAD, path_on_compute)

    def to_path(self) -> list[str]:
        """Returns the paths of its files below it, each with a slash before it."""
        return [f"/{file.path}" for file in self._files()]

    def download(
        self, target_path: Any = None, overwrite: bool = False, ignore_not_found: bool = False
    ) -> list[str]:
        """Downloads its files into the folder `target_path`, by default a new temporary one. Returns their
        paths. Raises UserErrorException for a file that is there already, unless `overwrite`, and for data
        that this machine cannot read."""
        import tempfile

        folder = os.path.abspath(os.fspath(target_path)) if target_path else tempfile.mkdtemp()
        files = self._files()
        present = [file.path for file in files if os.path.exists(os.path.join(folder, file.path))]
        if present and not overwrite:
            raise UserErrorException(f"download: {folder} has {present[0]} already; give overwrite=True.")
        return [fetch(self._hub, file, folder) for file in files]

    def mount(self, mount_point: str | None = None, **_others: Any) -> MountContext:
        """Returns where an input of this job lies. Raises UserErrorException for other data."""
        if len(self._sources) == 1 and isinstance(self._sources[0], LocalPath):
            return MountContext(self._sources[0].path)
        raise UserErrorException("FileDataset.mount: outside a job nothing is mounted; use download.")


class TabularDataset(AbstractDataset):
    """Tables in files of one form."""

    def __init__(
        self,
        sources: Sequence[Source],
        table: TableFormat,
        registration: Registration | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(sources, registration)
        self._table: TableFormat = table
        self._limit = limit

    def to_pandas_dataframe(self, on_error: Any = None, out_of_range_datetime: Any = None) -> Any:
        """Returns all rows. Raises UserErrorException without pandas, and for data that this machine cannot
        read."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            paths = [readable_path(self._hub, file, folder) for file in self._files()]
            return read_tables(self._table, paths, self._limit)

    def take(self, count: int) -> TabularDataset:
        """Returns its first rows."""
        rows = TabularDataset(self._sources, self._table, self._registration, count)
        rows.name = rows.version = None
        return rows
