"""Reads the mapping file. Python 3.11 and newer read all of TOML; older ones the part that the file needs:
tables, and keys with strings, whole numbers, `true`, `false` and lists of these."""

from __future__ import annotations

import re
from typing import Any

_HEADER = re.compile(
    r"\[\s*([^\[\]\"']+?|(?:[^\[\]\"']*(?:\"[^\"]*\"|'[^']*'))+[^\[\]\"']*)\s*\]\s*(?:#.*)?\Z"
)
_PART = re.compile(r"\s*(?:\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+))\s*(?:\.|\Z)")
_KEY = re.compile(r"\s*(?:\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+))\s*=\s*")
_VALUE = re.compile(r"\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|(true|false|[+-]?\d[\d_]*)(?![\w.]))\s*")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
Table = Any


def parse_toml(text: str) -> Table:
    """Returns the tables as dicts. Raises ValueError with the line."""
    try:
        import tomllib
    except ImportError:
        return parse_subset(text)
    return tomllib.loads(text)


def parse_subset(text: str) -> Table:
    root: Table = {}
    table = root
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        number, line = index + 1, _without_comment(lines[index]).strip()
        index += 1
        if not line:
            continue
        if line.startswith("["):
            table = _open_table(root, line, number)
            continue
        # A list may go on over lines.
        while line.count("[") > line.count("]") and index < len(lines):
            line += " " + _without_comment(lines[index]).strip()
            index += 1
        match = _KEY.match(line)
        if match is None:
            raise ValueError(f"line {number}: {line!r} is neither [a.table] nor key = value")
        value, rest = _read_value(line[match.end() :], number)
        if rest.strip():
            raise ValueError(f"line {number}: {rest.strip()!r} follows the value")
        table[_first(match.groups())] = value
    return root


def _open_table(root: Table, line: str, number: int) -> Table:
    match = _HEADER.match(line)
    if match is None:
        raise ValueError(f"line {number}: {line!r} is no [table]")
    table, rest = root, match.group(1)
    while rest:
        part = _PART.match(rest)
        if part is None:
            raise ValueError(f"line {number}: {line!r} is no [table]")
        table = table.setdefault(_first(part.groups()), {})
        rest = rest[part.end() :]
    return table


def _read_value(text: str, number: int) -> tuple[Any, str]:
    """Returns the value at the beginning, and what follows."""
    text = text.lstrip()
    if text.startswith("["):
        values = []
        text = text[1:].lstrip()
        while not text.startswith("]"):
            value, text = _read_value(text, number)
            values.append(value)
            text = text.lstrip()
            text = text[1:].lstrip() if text.startswith(",") else text
        return values, text[1:]
    match = _VALUE.match(text)
    if match is None:
        raise ValueError(f"line {number}: {text!r} is no string, whole number, true, false or list of these")
    quoted, literal, word = match.groups()
    rest = text[match.end() :]
    if word is not None:
        return (word == "true" if word in ("true", "false") else int(word)), rest
    if literal is not None:
        return literal, rest
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(0)), quoted), rest


def _without_comment(line: str) -> str:
    quote = ""
    for index, char in enumerate(line):
        if quote:
            quote = "" if char == quote and line[index - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char == "#":
            return line[:index]
    return line


def _first(groups: tuple[str | None, ...]) -> str:
    return next(group for group in groups if group is not None)
