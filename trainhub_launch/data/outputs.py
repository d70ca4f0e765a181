"""Outputs of a run that go to a datastore instead of the hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainhub_launch.data.stores import SECRET_PREFIX, SignIn, Store
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.json_types import JsonObject

LONGEST_PATH = 500
# A node tells the hub of so many files in one request.
MOST_NOTED = 500


@dataclass(frozen=True)
class OutputPlace:
    """Where the run's outputs go: into a folder of its own below `path` of a `datastore` of its workspace."""

    datastore: str
    path: str = ""

    def to_json(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class StoreFolder:
    """A folder that a node uses in a store: what stands before the names there, or the path of a folder of
    the node. `secret`: the name of the workspace's secret that opens the store, "" without one."""

    store: Store
    path: str
    secret: str = ""

    @property
    def secret_key(self) -> str:
        """The name of the credentials among the values of secrets that a node gets, "" without."""
        return f"{SECRET_PREFIX}{self.secret}" if self.store.sign_in == SignIn.SECRET else ""

    def to_json(self) -> JsonObject:
        return {"store": self.store.to_json(), "path": self.path, "secret": self.secret}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StoreFolder:
        return cls(Store.from_json(data["store"]), data["path"], data["secret"])


def read_outputs(fields: Fields) -> OutputPlace | None:
    """Returns what the field `outputs` of a spec says; None = the hub keeps them. Raises SpecError."""
    part = fields.nested("outputs")
    datastore, path = part.text("datastore").strip(), part.text("path", longest=LONGEST_PATH).strip("/")
    part.finish()
    check_place(part, datastore, path, "path")
    return OutputPlace(datastore, path) if datastore else None


def check_place(part: Fields, datastore: str, path: str, name: str) -> None:
    """`name`: of the field with the path. Raises SpecError unless `path` is one below the datastore, or
    ""."""
    if path and any(piece in ("", ".", "..") or not piece.isprintable() for piece in path.split("/")):
        raise SpecError(
            part.path(name),
            f"{path!r} is no path below the datastore; write it without '..', such as 'results/birds'",
        )
    if path and not datastore:
        raise SpecError(part.path("datastore"), f"is required beside {name}: name the datastore")
