"""What was changed by hand in a file that TrainHub has written: the readable part counts, and the spec in its
comment only fills in the rest."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jobs.exports.export import program_line
from jobs.exports.note import Note, Outcome
from jobs.exports.shell_words import split_words
from jobs.exports.spec_comment import spec_json
from jobs.imports.draft import NODES, PER_NODE, PROCESSES, ImportDraft
from trainhub_launch.errors import UnknownVariable
from trainhub_launch.expand import expand, references
from trainhub_launch.frameworks.mpi.configuration import MpiConfiguration
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration
from trainhub_launch.spec import RunSpec

# Comparing many lines takes the square of their number.
MAX_CHANGED_LINES = 200
_EXPORT = re.compile(r"\s*export ([A-Za-z_][A-Za-z0-9_]*)=(.*)")


class HandEdits:
    """Applies the differences between two readings of a file to a spec: `before` is of the text that TrainHub
    writes for it, `after` of the text as it is now."""

    def __init__(self, spec: RunSpec, before: ImportDraft, after: ImportDraft) -> None:
        self._spec = spec
        self._before, self._after = before, after
        self.json: dict[str, Any] = spec_json(spec)
        self.notes: list[Note] = []

    def apply(self) -> None:
        self._apply_fields()
        self._apply_layout()
        self._apply_body()
        # What the file still says of other fields, such as one that TrainHub never writes.
        earlier = {(note.field, note.message) for note in self._before.notes}
        self.notes += [
            note
            for note in self._after.notes
            if note.outcome == Outcome.NONE and (note.field, note.message) not in earlier
        ]

    def _apply_fields(self) -> None:
        before, after = self._before.fields, self._after.fields
        for path in sorted({*before, *after}):
            if path in (NODES, PROCESSES, PER_NODE) or before.get(path) == after.get(path):
                continue
            field, line = ".".join(path), self._after.lines.get(path)
            if path in after:
                _put(self.json, path, after[path])
                self._note(field, f"was changed by hand: it is {_short(after[path])} now", line)
            else:
                _remove(self.json, path)
                self._note(field, "was removed by hand", line)

    def _apply_layout(self) -> None:
        before, after = self._before.layout, self._after.layout
        if before == after:
            return
        distribution = self._spec.distribution
        line = self._after.lines.get(NODES)
        value: dict[str, Any]
        if isinstance(distribution, PyTorchConfiguration):
            count = distribution.process_count
            per_node = after.per_node if after.per_node != before.per_node else None
            per_node = per_node or (count // distribution.node_count if count else None)
            value = {"node_count": after.nodes, "process_count": per_node and per_node * after.nodes}
        elif isinstance(distribution, MpiConfiguration):
            per_node = after.per_node or distribution.process_count_per_node
            value = {"node_count": after.nodes, "process_count_per_node": per_node}
        elif distribution is not None:
            _put(self.json, ("resources", "node_count"), after.nodes)
            self._note("resources.node_count", f"was changed by hand: it is {after.nodes} now", line)
            return
        else:
            per_node = after.per_node
            value = {"type": "pytorch", "node_count": after.nodes}
            value |= {"process_count": per_node * after.nodes} if per_node else {}
        self.json["distribution"] = {**(self.json["distribution"] or {}), **value}
        if self._spec.resources.node_count is not None:
            _put(self.json, ("resources", "node_count"), after.nodes)
        self._note("distribution", f"was changed by hand: {_short(self.json['distribution'])} now", line)

    def _apply_body(self) -> None:
        old, new = self._before.body.text.split("\n"), self._after.body.text.split("\n")
        same = _common_beginning(old, new)
        old, new = old[same:], new[same:]
        end = _common_beginning(old[::-1], new[::-1])
        old, new = old[: len(old) - end], new[: len(new) - end]
        begin = self._after.body.line + same
        if max(len(old), len(new)) > MAX_CHANGED_LINES:
            message = f"{len(new)} lines differ, too many to compare: TrainHub starts the processes as before"
            self.notes.append(Note(self._after.body.field, Outcome.NONE, message, begin))
            return
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for kind, start, stop, first, last in matcher.get_opcodes():
            if kind != "equal":
                for number, pair in enumerate(_pairs(old[start:stop], new[first:last]), begin + first):
                    self._apply_line(*pair, number)

    def _apply_line(self, old: str, new: str, number: int) -> None:
        if not old.strip() and not new.strip():
            return
        if new.strip().startswith("#"):
            return
        if self._is_variable(old, new, number) or self._is_command(old, new, number):
            return
        self.notes.append(
            Note(
                self._after.body.field,
                Outcome.NONE,
                f"{(new or old).strip()[:60]!r}: a spec has no such lines, and TrainHub starts the processes "
                "itself: put it into the script",
                number,
            )
        )

    def _is_variable(self, old: str, new: str, number: int) -> bool:
        before, after = _EXPORT.fullmatch(old), _EXPORT.fullmatch(new)
        words = split_words(after[2]) if after else []
        if (
            words is None
            or len(words) > 1
            or any(references(word) for word in words)
            or not (before or after)
        ):
            return False
        variables = self.json["environment_variables"]
        if after:
            variables[after[1]] = (words or [""])[0].replace("$$", "$")
            self._note(f"environment_variables.{after[1]}", "was changed by hand", number)
        if before and before[1] in variables and not (after and after[1] == before[1]):
            del variables[before[1]]
            self._note(f"environment_variables.{before[1]}", "was removed by hand", number)
        return True

    def _is_command(self, old: str, new: str, number: int) -> bool:
        command = program_line(self._spec)
        begin, is_there, end = old.partition(command)
        if not is_there or not new.startswith(begin) or not new.endswith(end):
            return False
        words = split_words(new[len(begin) : len(new) - len(end)])
        if not words:
            return False
        if self._spec.command:
            self.json["command"] = words
        else:
            try:
                self.json["script"], self.json["arguments"] = expand(words[0], {}), words[1:]
            except UnknownVariable:
                return False
        self._note("command" if self._spec.command else "script", "was changed by hand", number)
        return True

    def _note(self, field: str, message: str, line: int | None) -> None:
        self.notes.append(Note(field, Outcome.CHANGED, message, line))


def _common_beginning(old: Sequence[str], new: Sequence[str]) -> int:
    same = zip(old, new, strict=False)
    return next((at for at, (one, other) in enumerate(same) if one != other), min(len(old), len(new)))


def _pairs(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    """Yields old and new lines: those that differ in the same place together, the rest alone."""
    for number in range(max(len(old), len(new))):
        yield (
            old[number] if number < len(old) else "",
            new[number] if number < len(new) else "",
        )


def _put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        if not isinstance(data.get(name), dict):
            data[name] = {}
        data = data[name]
    data[path[-1]] = value


def _remove(data: dict[str, Any], path: tuple[str, ...]) -> None:
    parents = [data]
    for name in path[:-1]:
        parents.append(parents[-1].get(name) or {})
    parents[-1].pop(path[-1], None)
    if path[0] == "inputs" and not parents[-1]:
        # An input of which nothing is left.
        parents[-2].pop(path[-2], None)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
