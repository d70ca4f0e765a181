"""What still needs a datastore. Apps above name modules here, because this floor knows no runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    # Apps name their modules here before the models are loaded.
    from datastores.models import Datastore

# Dotted names of modules with the function of DatastoreUse.
MODULES: list[str] = []


class DatastoreUse(Protocol):
    """The function of a module in MODULES."""

    def find_use(self, datastore: Datastore) -> str:
        """Returns what needs the datastore, as a phrase, "" if nothing does."""


def first_use(datastore: Datastore) -> str:
    """Returns the first thing that needs the datastore, as a phrase, "" if nothing does."""
    modules = (cast("DatastoreUse", import_module(name)) for name in MODULES)
    return next(filter(None, (module.find_use(datastore) for module in modules)), "")
