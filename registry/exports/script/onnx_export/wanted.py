"""export.json: what the hub wrote down of the form. It has been checked there; here it only gets its
types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WANTED = Path("export.json").absolute()


@dataclass(frozen=True)
class RemoteFile:
    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Input:
    """`low`, `high`: the bounds of random values, both included for whole numbers; None: normal, or 0 and
    1."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Wanted:
    """`example`: a file below example/, or "". `dynamic`: input's name ("" for every input) -> axis -> its
    name."""

    model: str
    version: int
    files: tuple[RemoteFile, ...]
    file: str
    factory: str
    inputs: tuple[Input, ...]
    example: str
    dynamic: dict[str, dict[int, str]]
    relative: float
    absolute: float
    opset: int | None
    script_folder: str

    @classmethod
    def read(cls) -> Wanted:
        told: dict[str, Any] = json.loads(WANTED.read_text())
        return cls(
            model=told["model"],
            version=told["version"],
            files=tuple(RemoteFile(**file) for file in told["files"]),
            file=told["file"],
            factory=told["factory"],
            inputs=tuple(Input(**{**item, "shape": tuple(item["shape"])}) for item in told["inputs"]),
            example=told["example"],
            dynamic={
                name: {int(axis): word for axis, word in axes.items()}
                for name, axes in told["dynamic"].items()
            },
            relative=told["relative"],
            absolute=told["absolute"],
            opset=told["opset"],
            script_folder=told["script_folder"],
        )
