"""What still needs a datastore or dataset. Apps above name modules here, because this floor knows no runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    # Apps name their modules here before the models are loaded.
    from collections.abc import Iterator

    from datastores.models import Dataset, Datastore

# Dotted names of modules with the functions of DataUse.
MODULES: list[str] = []


class DataUse(Protocol):
    """The functions of a module in MODULES."""

    def find_use(self, datastore: Datastore) -> str:
        """Returns what needs the datastore, as a phrase, "" if nothing does."""

    def find_dataset_use(self, dataset: Dataset) -> str:
        """Returns what has read the dataset, as a phrase, "" if nothing has."""


def first_use(datastore: Datastore) -> str:
    """Returns the first thing that needs the datastore, as a phrase, "" if nothing does."""
    return next(filter(None, (module.find_use(datastore) for module in _modules())), "")


def first_dataset_use(dataset: Dataset) -> str:
    """Returns the first thing that has read the dataset, as a phrase, "" if nothing has."""
    return next(filter(None, (module.find_dataset_use(dataset) for module in _modules())), "")


def _modules() -> Iterator[DataUse]:
    return (cast("DataUse", import_module(name)) for name in MODULES)
