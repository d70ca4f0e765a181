"""References to data in a datastore, as arguments of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trainhub_azureml.data.data_files import clean_path
from trainhub_azureml.data.refused_members import RefusedMembers

if TYPE_CHECKING:
    from trainhub_azureml.data.datastore import Datastore

PREFIX = "$AZUREML_DATAREFERENCE_"
MOUNT, DOWNLOAD = "mount", "download"


def input_name(text: str) -> str:
    """Returns a name that an input of a run may have."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")[:60]
    return name if name[:1].isalpha() else f"data_{name}".rstrip("_")


class DataReference(RefusedMembers):
    """As text it is the variable that holds its path in the run."""

    def __init__(
        self,
        datastore: Datastore,
        data_reference_name: str | None = None,
        path_on_datastore: str | None = None,
        mode: str = MOUNT,
        path_on_compute: str | None = None,
        overwrite: bool = False,
        **_others: Any,
    ) -> None:
        self.datastore = datastore
        self.path_on_datastore = clean_path(path_on_datastore or "")
        self.data_reference_name = input_name(
            data_reference_name or f"{datastore.name}_{self.path_on_datastore}"
        )
        self.mode = mode
        self.path_on_compute = path_on_compute
        self.overwrite = overwrite

    def path(self, path: str | None = None, data_reference_name: str | None = None) -> DataReference:
        """Returns a reference to a file or folder below this one."""
        below = "/".join(filter(None, (self.path_on_datastore, clean_path(path or ""))))
        return DataReference(
            self.datastore, data_reference_name, below, self.mode, self.path_on_compute, self.overwrite
        )

    def as_mount(self) -> DataReference:
        self.mode = MOUNT
        return self

    def as_download(self, path_on_compute: str | None = None, overwrite: bool = False) -> DataReference:
        self.mode, self.path_on_compute, self.overwrite = DOWNLOAD, path_on_compute, overwrite
        return self

    def to_config(self) -> DataReferenceConfiguration:
        """Returns what `RunConfiguration.data_references` takes."""
        return DataReferenceConfiguration(
            self.datastore.name, self.mode, self.path_on_datastore, self.path_on_compute, self.overwrite
        )

    def __str__(self) -> str:
        return f"{PREFIX}{self.data_reference_name}"

    def __repr__(self) -> str:
        return f"DataReference({self.datastore.name!r}, {self.path_on_datastore!r}, mode={self.mode!r})"


class DataReferenceConfiguration:
    """A reference whose datastore is looked up when the run is submitted."""

    def __init__(
        self,
        datastore_name: str | None = None,
        mode: str = MOUNT,
        path_on_datastore: str | None = None,
        path_on_compute: str | None = None,
        overwrite: bool = False,
    ) -> None:
        self.datastore_name = datastore_name
        self.mode = mode
        self.path_on_datastore = path_on_datastore
        self.path_on_compute = path_on_compute
        self.overwrite = overwrite


class DataPath:
    """A path in a datastore, which `Dataset` takes."""

    def __init__(
        self, datastore: Datastore, path_on_datastore: str | None = None, name: str | None = None
    ) -> None:
        self.datastore = datastore
        self.path_on_datastore = clean_path(path_on_datastore or "")
        self.name = name or self.path_on_datastore or datastore.name
