"""What a node is to do about the checkpoints of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainhub_launch.data.outputs import StoreFolder

# A node's part of a checkpoint may have so many files, and its name so many characters.
MAX_CHECKPOINT_FILES = 10_000
MAX_CHECKPOINT_NAME = 200


@dataclass(frozen=True)
class OrderedFile:
    """A file of a checkpoint. `path`: relative to the folder of checkpoints."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class StoredFile(OrderedFile):
    """A file of a checkpoint that lies in a datastore. `key`: its name in the folder of that checkpoint."""

    key: str


def part_folder(number: int, version: str) -> str:
    """Returns the folder of a node's part of a checkpoint, in the run's folder of a datastore. `version`: of
    that part."""
    return f"{number}/{version[:16]}"


@dataclass(frozen=True)
class CheckpointOrder:
    """What a node is to do about the checkpoints of an attempt. A checkpoint is an entry of a folder that the
    script writes into: a file, or a folder with everything in it. Its parts may lie on several nodes.

    `folder`: where that is, below the working folder; `files`: what is put there before the ranks start, from
    the hub. `store`: where the node writes its parts of the attempt's checkpoints; None = to the hub.
    `source`: where the `stored_files` lie, which are put there as well."""

    folder: str
    files: tuple[OrderedFile, ...] = ()
    store: StoreFolder | None = None
    source: StoreFolder | None = None
    stored_files: tuple[StoredFile, ...] = ()

    @property
    def all_files(self) -> tuple[OrderedFile, ...]:
        return (*self.files, *self.stored_files)

    @property
    def secret_keys(self) -> frozenset[str]:
        """The names of the credentials among the values of secrets that the node gets."""
        folders = [folder for folder in (self.store, self.source) if folder is not None]
        return frozenset(folder.secret_key for folder in folders if folder.secret_key)

    def to_json(self) -> dict[str, Any]:
        data = {"folder": self.folder, "files": [dict(vars(file)) for file in self.files]}
        later = {
            "store": self.store.to_json() if self.store else None,
            "source": self.source.to_json() if self.source else None,
            "stored_files": [dict(vars(file)) for file in self.stored_files],
        }
        return data | {name: value for name, value in later.items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CheckpointOrder:
        return cls(
            data["folder"],
            tuple(OrderedFile(**file) for file in data["files"]),
            StoreFolder.from_json(data["store"]) if data.get("store") else None,
            StoreFolder.from_json(data["source"]) if data.get("source") else None,
            tuple(StoredFile(**file) for file in data.get("stored_files", ())),
        )
