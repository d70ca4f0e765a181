"""The sources of a folder: scripts, notebooks, and files that list packages."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_SKIPPED = frozenset(
    {".git", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints", "site-packages"}
)
_MAGIC = re.compile(r"\s*[%!?]|.*\?\s*\Z")
MAX_BYTES = 20_000_000


class SourceText(NamedTuple):
    """`tree`: of Python; None for a list of packages, or if `problem` says why it cannot be read."""

    path: str
    text: str
    tree: ast.Module | None = None
    problem: str = ""


def read_sources(paths: Iterable[str]) -> Iterator[SourceText]:
    """Yields all scripts and notebooks, and files of packages that lie in folders."""
    for path in paths:
        if not os.path.isdir(path):
            yield _read(path)
            continue
        for parent, folders, files in os.walk(path):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED)
            for name in sorted(files):
                if name.endswith((".py", ".ipynb")) or _lists_packages(name):
                    yield _read(os.path.join(parent, name))


def _lists_packages(name: str) -> bool:
    lower = name.lower()
    if lower.endswith((".yml", ".yaml")):
        return "conda" in lower or "env" in lower
    return lower.endswith(".txt") and "requirements" in lower


def _read(path: str) -> SourceText:
    try:
        if os.path.getsize(path) > MAX_BYTES:
            return SourceText(path, "", problem="is too large to be a source")
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            text = file.read()
    except OSError as error:
        return SourceText(path, "", problem=error.strerror or str(error))
    if path.endswith((".yml", ".yaml", ".txt")):
        return SourceText(path, text)
    try:
        if path.endswith(".ipynb"):
            text = _notebook(text)
        return SourceText(path, text, ast.parse(text))
    except (SyntaxError, ValueError, RecursionError) as error:
        return SourceText(path, text, problem=f"cannot be read: {error}")


def _notebook(text: str) -> str:
    """Returns the cells with Python as one source. Lines of magic are blank, so that the others parse; a cell
    that is another language, or no Python at all, is left out."""
    cells = json.loads(text).get("cells") or []
    parts = []
    for cell in cells:
        if cell.get("cell_type") != "code":
            continue
        source = cell.get("source") or ""
        code = source if isinstance(source, str) else "".join(source)
        if code.lstrip().startswith("%%") and not code.lstrip().startswith(("%%time", "%%capture")):
            continue
        lines = ("pass" if _MAGIC.match(line) else line for line in code.splitlines())
        part = "\n".join(lines)
        try:
            ast.parse(part)
        except SyntaxError:
            continue
        parts.append(part)
    return "\n".join(parts) + "\n"
