"""Fields that the YAML of several launchers has in the same form."""

from __future__ import annotations

import re
from collections.abc import Callable

from jobs.exports.note import Outcome
from jobs.imports.draft import ImportDraft
from jobs.imports.yaml_document import YamlDocument
from trainhub_launch.spec import VARIABLE_NAME

_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([KMGT]i?)?B?\+?(?:\.\.)?\Z", re.IGNORECASE)
_UNITS = {"": 2**30, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_DURATION = re.compile(r"(\d{1,9})\s*(s|m|h|d|w)?\Z")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def parse_size(text: str) -> int:
    """Returns the bytes of a size such as 64, 64GB, 64+ or 64GB..; without a unit it is in GB, which are 2^30
    bytes for these launchers. Returns 0 for anything else."""
    match = _SIZE.match(text.strip())
    return int(float(match[1]) * _UNITS[(match[2] or "")[:1].upper()]) if match else 0


def parse_seconds(text: str) -> int:
    """Returns the seconds of a duration such as 90, 90s or 2h; 0 for anything else."""
    match = _DURATION.match(text.strip())
    return int(match[1]) * _SECONDS[match[2] or ""] if match else 0


def put_variables(
    draft: ImportDraft,
    document: YamlDocument,
    path: tuple[str, ...],
    read: Callable[[str], str | dict[str, str]] = str,
) -> None:
    """Reads variables as a mapping or a list of `NAME=value`. `read`: turns a value into that of a spec."""
    for name in document.names(*path):
        text = document.text(*path, name)
        line = document.line(*path, name)
        variable, is_set = name, True
        if document.is_list(*path):
            variable, separator, text = text.partition("=")
            is_set = bool(separator)
        field = ".".join((*path, variable))
        if not VARIABLE_NAME.match(variable):
            draft.refuse(field, "is no name of a variable of the environment", line)
        elif not is_set or document.value(*path, name) is None:
            put_secret(draft, variable, field, line)
        else:
            draft.put(("environment_variables", variable), read(text), field, line)


def put_secret(draft: ImportDraft, variable: str, field: str, line: int) -> None:
    """A variable whose value is not in the file becomes a secret of the same name."""
    message = f"its value is not in the file: make a secret {variable} in your workspace"
    draft.put(("environment_variables", variable), {"secret": variable}, field, line, message)


def put_size(draft: ImportDraft, document: YamlDocument, path: tuple[str, ...], name: str) -> None:
    """Reads a size of each node into a field of `resources`."""
    text = document.text(*path)
    if not text:
        return
    size = parse_size(text)
    line = document.line(*path)
    if size:
        change = (
            "becomes the most that it may use on each node" if text.rstrip().endswith(("+", "..")) else ""
        )
        draft.put(("resources", name), size, ".".join(path), line, change)
    else:
        draft.refuse(".".join(path), f"{text!r:.60} is no single size: set resources.{name}", line)


def put_cores(draft: ImportDraft, document: YamlDocument, path: tuple[str, ...]) -> None:
    text = document.text(*path)
    if not text:
        return
    match = re.fullmatch(r"(\d{1,4}(?:\.\d{1,3})?)(\+|\.\.)?", text.strip())
    line = document.line(*path)
    if match and float(match[1]):
        change = "becomes the most that it may use on each node" if match[2] else ""
        draft.put(("resources", "cpus"), float(match[1]), ".".join(path), line, change)
    else:
        draft.refuse(".".join(path), f"{text!r:.60} is no single number: set resources.cpus", line)


def note_unread(draft: ImportDraft, document: YamlDocument, remedies: dict[str, str]) -> None:
    """Adds a note for each field that nobody has read. `remedies`: what to do instead, by field."""
    for path in document.unread():
        field = ".".join(path)
        remedy = remedies.get(field) or remedies.get(path[0], "it is left out")
        draft.note(field, Outcome.NONE, f"a spec has nothing like it: {remedy}", document.line(*path))
