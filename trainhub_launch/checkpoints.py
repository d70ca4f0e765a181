"""What hub and nodes tell each other about checkpoints.
 A checkpoint is an entry of a folder that the script writes into: a file, or a folder with everything in it.
Its parts may lie on several nodes. The hub keeps it once it has the part of every node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# The folder below the working folder, unless the spec names another.
FOLDER = "checkpoints"
# At most so many files may belong to a node's part of a checkpoint.
MAX_FILES = 10_000
MAX_NAME_LENGTH = 200


class Sign(StrEnum):
    """By what a checkpoint shows that it is complete. RENAMED: it got its name when it was whole. METADATA:
    the file `.metadata`, which torch.distributed.checkpoint writes last. LATEST: DeepSpeed's file `latest`
    names it. MARKER: a file `.complete` in it. NONE: nothing but that nobody writes to it any more."""

    RENAMED = "renamed"
    METADATA = "metadata"
    LATEST = "latest"
    MARKER = "marker"
    NONE = ""


@dataclass(frozen=True)
class CheckpointFile:
    """A file of a checkpoint. `path`: relative to the folder of checkpoints, so it begins with the entry's
    name."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class CheckpointOrder:
    """What a node is to do about the checkpoints of an attempt. `folder`: where the script writes them, below
    its working folder; `files`: what is put there before the ranks start."""

    folder: str = FOLDER
    files: tuple[CheckpointFile, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"folder": self.folder, "files": [dict(vars(file)) for file in self.files]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CheckpointOrder:
        return cls(data["folder"], tuple(CheckpointFile(**file) for file in data["files"]))
