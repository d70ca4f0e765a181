"""What a dry run would have sent to the hub before it submits: later lines of the same script use it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trainhub_azureml.data.publication import hub_name
from trainhub_azureml.submission.dry_run import is_dry_run

if TYPE_CHECKING:
    from trainhub_azureml.data.data_files import DataFile
    from trainhub_azureml.data.datasets import AbstractDataset

_uploaded: dict[str, dict[str, DataFile]] = {}
_registered: dict[str, AbstractDataset] = {}


def add_files(datastore: str, files: Iterable[DataFile]) -> None:
    """`datastore`: its name on the hub; `files`: with their paths below it."""
    _uploaded.setdefault(datastore, {}).update({file.path: file for file in files})


def added_files(datastore: str) -> Mapping[str, DataFile]:
    """Returns the files by path, none outside a dry run."""
    return _uploaded.get(datastore, {}) if is_dry_run() else {}


def add_dataset(
    dataset: AbstractDataset, name: str, description: str | None, tags: Mapping[str, Any] | None
) -> AbstractDataset:
    """Returns the dataset under its name, without a version: that is the hub's."""
    registered = copy.copy(dataset)
    registered.name, registered.description = name, description
    registered.tags = {str(key): "" if value is None else str(value) for key, value in (tags or {}).items()}
    _registered[hub_name(name)] = registered
    return registered


def added_dataset(name: str) -> AbstractDataset | None:
    """Returns None also outside a dry run."""
    return _registered.get(hub_name(name)) if is_dry_run() else None


def added_datasets() -> Mapping[str, AbstractDataset]:
    """Returns the datasets by name, none outside a dry run."""
    return {str(dataset.name): dataset for dataset in _registered.values()} if is_dry_run() else {}
