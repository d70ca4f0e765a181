"""Reads conda files: the part of YAML that they use, without a library for it."""

from __future__ import annotations

import re
from typing import Any

_KEY = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*))?\Z")


def parse_conda(text: str) -> dict[str, Any]:
    """Returns a conda file as a dict of strings and lists; an entry `pip:` of a list is a dict. Raises
    ValueError with the line for what conda files do not need."""
    data: dict[str, Any] = {}
    items: list[Any] = []
    inner: list[Any] | None = None
    inner_indent = outer_indent = -1
    for number, raw in enumerate(text.splitlines(), 1):
        line = _without_comment(raw).rstrip()
        if not line.strip() or line.strip() == "---":
            continue
        indent, content = len(line) - len(line.lstrip()), line.strip()
        if content[0] in "&*!|>{%":
            raise ValueError(f"line {number}: {content!r} is not supported in conda files")
        if not content.startswith("- ") and content != "-":
            match = _KEY.match(content)
            if match is None or indent:
                raise ValueError(f"line {number}: {content!r} is neither a key nor an entry of a list")
            items, inner, outer_indent = [], None, -1
            value = match.group(2) or ""
            data[match.group(1)] = (
                _flow_list(value, number) if value.startswith("[") else _scalar(value) or items
            )
            continue
        outer_indent = indent if outer_indent < 0 else outer_indent
        entry = content[1:].strip()
        match = _KEY.match(entry)
        if indent > outer_indent and inner is not None:
            inner_indent = indent if inner_indent < 0 else inner_indent
            inner.append(_scalar(entry))
        elif match and not entry.startswith(("'", '"')):
            inner, inner_indent = [], -1
            value = match.group(2) or ""
            items.append({match.group(1): _flow_list(value, number) if value else inner})
        else:
            inner = None
            items.append(_scalar(entry))
    return data


def _flow_list(text: str, number: int) -> list[str]:
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"line {number}: {text!r} is no list")
    return [_scalar(part.strip()) for part in text[1:-1].split(",") if part.strip()]


def _scalar(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1]
    return text


def _without_comment(line: str) -> str:
    """A `#` begins a comment only at the beginning or behind a blank, and not within quotes."""
    quote = ""
    for index, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and (index == 0 or line[index - 1] in " -["):
            quote = char
        elif char == "#" and (index == 0 or line[index - 1] in " \t"):
            return line[:index]
    return line
