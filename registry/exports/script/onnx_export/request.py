"""Reads export.json, the request from the hub. The hub has checked the values; this module only converts
their types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REQUEST_FILE = Path("export.json").absolute()


@dataclass(frozen=True)
class RemoteFile:
    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class DeclaredInput:
    """One input as declared in the form. `low` and `high` bound random values, both included for whole
    numbers.

    None: normally distributed, or 0 and 1 for whole numbers.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ExportRequest:
    """What to export. `example`: a file in example/, or "". `dynamic`: name of an input ("" for every input)
    -> axis -> name of the axis."""

    model: str
    version: int
    files: tuple[RemoteFile, ...]
    file: str
    factory: str
    inputs: tuple[DeclaredInput, ...]
    example: str
    dynamic: dict[str, dict[int, str]]
    relative: float
    absolute: float
    opset: int | None
    script_folder: str

    @classmethod
    def read(cls) -> ExportRequest:
        fields: dict[str, Any] = json.loads(REQUEST_FILE.read_text())
        return cls(
            model=fields["model"],
            version=fields["version"],
            files=tuple(RemoteFile(**file) for file in fields["files"]),
            file=fields["file"],
            factory=fields["factory"],
            inputs=tuple(
                DeclaredInput(**{**item, "shape": tuple(item["shape"])}) for item in fields["inputs"]
            ),
            example=fields["example"],
            dynamic={
                name: {int(axis): word for axis, word in axes.items()}
                for name, axes in fields["dynamic"].items()
            },
            relative=fields["relative"],
            absolute=fields["absolute"],
            opset=fields["opset"],
            script_folder=fields["script_folder"],
        )
