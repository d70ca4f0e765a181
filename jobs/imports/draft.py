"""A spec in the making: what a file says, field by field, with a note on each line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.exports.note import Note, Outcome

NODES, PROCESSES, PER_NODE = ("layout", "nodes"), ("layout", "processes"), ("layout", "per_node")
# What is no field of a spec by itself: which one it becomes depends on the framework.
_LAYOUT: dict[tuple[str, ...], str] = {
    NODES: "the number of nodes of the distribution",
    PROCESSES: "the number of processes of the distribution",
    PER_NODE: "the number of processes on each node of the distribution",
}


@dataclass(frozen=True)
class ProcessLayout:
    """`nodes`, and how many processes the launcher starts on each; None = the command starts them itself, or
    there is one. `starter`: a type of distribution, "" = the command says it."""

    nodes: int = 1
    per_node: int | None = None
    starter: str = ""


@dataclass(frozen=True)
class ShellBody:
    """Lines that a shell runs. `line`: the number of the first one in the file; `field`: where they stand."""

    text: str
    line: int
    field: str

    @property
    def lines(self) -> list[tuple[int, str]]:
        return list(enumerate(self.text.split("\n"), self.line))


class ImportDraft:
    """`fields`: values of the spec by their paths, such as `limits.timeout_s`, and their lines in the file.
    `layout` and `body` are what the command and the distribution are made of."""

    def __init__(self) -> None:
        self.fields: dict[tuple[str, ...], Any] = {}
        self.lines: dict[tuple[str, ...], int] = {}
        self.notes: list[Note] = []
        self.layout = ProcessLayout()
        self.body = ShellBody("", 1, "")

    def put(self, path: tuple[str, ...], value: Any, field: str, line: int, message: str = "") -> None:
        """Sets a field of the spec. `message`: how it was changed on the way, "" if it was not."""
        self.fields[path] = value
        self.lines[path] = line
        if message:
            self.note(field, Outcome.CHANGED, message, line)
        else:
            self.note(field, Outcome.SAME, f"becomes {_LAYOUT.get(path, '.'.join(path))}", line)

    def note(self, field: str, outcome: Outcome, message: str, line: int | None) -> None:
        self.notes.append(Note(field, outcome, message, line))

    def refuse(self, field: str, message: str, line: int) -> None:
        """Says that there is nothing like this field in a spec."""
        self.note(field, Outcome.NONE, message, line)

    def spec_json(self) -> dict[str, Any]:
        return nested({path: value for path, value in self.fields.items() if path not in _LAYOUT})


def nested(fields: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """Returns values by their paths as objects in objects."""
    out: dict[str, Any] = {}
    for path, value in fields.items():
        inner = out
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return out
