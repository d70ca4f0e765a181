"""What an export is made of: texts of files, and notes on what they cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.exports.note import Note
from jobs.exports.shell_words import shell_line
from trainhub_launch.expand import literal
from trainhub_launch.spec import RunSpec


@dataclass(frozen=True)
class SpecExport:
    """`files`: the text of each file by its name."""

    files: Mapping[str, str]
    notes: tuple[Note, ...]

    def to_json(self) -> dict[str, Any]:
        return {"files": dict(self.files), "notes": [note.to_json() for note in self.notes]}


@dataclass(frozen=True)
class ExportFormat:
    """`label`: as people call the format; `command`: how the files are used."""

    label: str
    command: str
    render: Callable[[RunSpec], SpecExport]


def program_line(spec: RunSpec) -> str:
    """Returns what each process runs as a line of bash; of a script without the word python."""
    return shell_line(spec.command or (literal(spec.script), *spec.arguments))


def command_line(spec: RunSpec) -> str:
    """Returns the command of each process as a line of bash."""
    return program_line(spec) if spec.command else f"python {program_line(spec)}"
