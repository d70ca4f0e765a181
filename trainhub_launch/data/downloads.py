from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainhub_launch.data.stores import SECRET_PREFIX, SignIn, Store
from trainhub_launch.json_types import JsonObject

# Of `DataDownload.list_key`.
KEY_LENGTH = 16
# As SECRET_PREFIX: no name of a secret has a colon.
PEERS_PREFIX = "peers:"


@dataclass(frozen=True)
class InputList:
    """The list of the files of an input that lies on the nodes: they are compared with it before the ranks
    start. `manifest`, `is_file` and `uses_changed`: as in DataDownload."""

    manifest: str
    is_file: bool
    uses_changed: bool = False

    def to_json(self) -> JsonObject:
        changed: JsonObject = {"uses_changed": True} if self.uses_changed else {}
        return {"manifest": self.manifest, "is_file": self.is_file, **changed}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> InputList:
        return cls(data["manifest"], data["is_file"], data.get("uses_changed", False))


@dataclass(frozen=True)
class DataDownload:
    """An input that each node downloads before the ranks start, or of which the script gets addresses.
    `path`: the file or folder of the store, "" for all of it; `secret`: the name of the workspace's secret
    with which the store is read, "" without one; `scope`: whose runs share what a node has downloaded.
    `manifest`: the SHA-256 of the list of exactly those files that are read (see manifests), which the hub
    has, "" = all that are there now; `is_file`: the list has one file, which is the one at `path`. `peers`:
    the address at which the hub tells which nodes have which of these files, "" = the node takes none from
    other nodes. `uses_changed`: what is there now is taken in place of listed files that were changed, and
    those that are gone are left out."""

    store: Store
    path: str
    secret: str
    scope: str
    manifest: str = ""
    is_file: bool = False
    peers: str = ""
    uses_changed: bool = False

    @property
    def swarm(self) -> str:
        """Names exactly these files: nodes with the same name can take them from each other."""
        content = [self.scope, self.store.identity, self.path, self.is_file, self.manifest]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @property
    def can_share(self) -> bool:
        """Whether nodes can take these files from each other."""
        return bool(self.manifest) and self.store.is_shared

    @property
    def peer_key(self) -> str:
        """The name of the ticket for `peers` among the values of secrets that a node gets, "" without."""
        return f"{PEERS_PREFIX}{self.swarm}" if self.peers else ""

    @property
    def secret_key(self) -> str:
        """The name of the credentials among the values of secrets that a node gets, "" without."""
        return f"{SECRET_PREFIX}{self.secret}" if self.store.sign_in == SignIn.SECRET else ""

    @property
    def list_key(self) -> str:
        """The name under which a node says that it has all of these files."""
        return self.swarm[:KEY_LENGTH]

    def to_json(self) -> JsonObject:
        listed: JsonObject = {"manifest": self.manifest, "is_file": self.is_file} if self.manifest else {}
        return {
            "store": self.store.to_json(),
            "path": self.path,
            "secret": self.secret,
            "scope": self.scope,
            **listed,
            **({"peers": self.peers} if self.peers else {}),
            **({"uses_changed": True} if self.uses_changed else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DataDownload:
        return cls(
            Store.from_json(data["store"]),
            data["path"],
            data["secret"],
            data["scope"],
            data.get("manifest", ""),
            data.get("is_file", False),
            data.get("peers", ""),
            data.get("uses_changed", False),
        )
