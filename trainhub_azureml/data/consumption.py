"""How a run gets a dataset, and where it leaves files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainhub_azureml.data.data_reference import DOWNLOAD, MOUNT, input_name
from trainhub_azureml.data.refused_members import RefusedMembers
from trainhub_azureml.exceptions import UserErrorException

if TYPE_CHECKING:
    from trainhub_azureml.data.datasets import AbstractDataset

DIRECT = "direct"
MODES = (MOUNT, DOWNLOAD, DIRECT)


class DatasetConsumptionConfig(RefusedMembers):
    """A dataset as an argument of a run, under a name. `mode`: `mount` and `download` give a path, `direct`
    the id of the dataset."""

    def __init__(
        self, name: str, dataset: AbstractDataset, mode: str = DIRECT, path_on_compute: str | None = None
    ) -> None:
        if mode not in MODES:
            raise UserErrorException(f"mode: {mode!r} is none of {', '.join(MODES)}.")
        self.name = name
        self.dataset = dataset
        self.mode = mode
        self.path_on_compute = path_on_compute

    def as_mount(self, path_on_compute: str | None = None) -> DatasetConsumptionConfig:
        self.mode, self.path_on_compute = MOUNT, path_on_compute
        return self

    def as_download(self, path_on_compute: str | None = None) -> DatasetConsumptionConfig:
        self.mode, self.path_on_compute = DOWNLOAD, path_on_compute
        return self


class OutputFileDatasetConfig(RefusedMembers):
    """A folder to which a run writes, as an argument: below `outputs`, which the hub keeps, or writes to the
    datastore of `destination`."""

    _count = 0

    def __init__(
        self, name: str | None = None, destination: Any = None, source: Any = None, **_others: Any
    ) -> None:
        if name is None:
            OutputFileDatasetConfig._count += 1
            name = f"output_{OutputFileDatasetConfig._count}"
        if source is not None:
            raise UserErrorException(
                "OutputFileDatasetConfig: source is not offered; the script writes to the path that it gets "
                "as an argument."
            )
        self.name = input_name(name)
        self.destination = destination
        self.mode = MOUNT

    def as_mount(self, **_others: Any) -> OutputFileDatasetConfig:
        return self

    def as_upload(
        self, overwrite: bool = False, source_globs: Any = None, **_others: Any
    ) -> OutputFileDatasetConfig:
        return self
