from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainhub_launch.data.stores import SECRET_PREFIX, SignIn, Store
from trainhub_launch.json_types import JsonObject


@dataclass(frozen=True)
class DataDownload:
    """An input that each node downloads before the ranks start. `path`: the file or folder of the store, ""
    for all of it; `secret`: the name of the workspace's secret with which the store is read, "" without one;
    `scope`: whose runs share what a node has downloaded."""

    store: Store
    path: str
    secret: str
    scope: str

    @property
    def secret_key(self) -> str:
        """The name of the credentials among the values of secrets that a node gets, "" without."""
        return f"{SECRET_PREFIX}{self.secret}" if self.store.sign_in == SignIn.SECRET else ""

    def to_json(self) -> JsonObject:
        return {
            "store": self.store.to_json(),
            "path": self.path,
            "secret": self.secret,
            "scope": self.scope,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DataDownload:
        return cls(Store.from_json(data["store"]), data["path"], data["secret"], data["scope"])
