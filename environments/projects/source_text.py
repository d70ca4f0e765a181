"""The text that describes a project: the text of its files, recognised by what they contain."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainhub_launch.errors import SpecError

PYPROJECT, UV_LOCK, PYLOCK = "pyproject.toml", "uv.lock", "pylock.toml"
# Stands between the text of pyproject.toml and that of uv.lock.
SEPARATOR = "#--- uv.lock ---"
MAX_BYTES = 2 * 1024 * 1024
_PROJECT = re.compile(r"^\s*\[+\s*(project|build-system|tool|dependency-groups)\b[^\]=]*\]+\s*(#.*)?$", re.M)
_PACKAGES = re.compile(r"^\s*\[\[\s*packages?\s*\]\]", re.M)


@dataclass(frozen=True)
class ProjectSource:
    """The texts of the files; "" for those that are not given. There is either `pyproject`, with or without
    `uv_lock`, or `pylock`."""

    pyproject: str = ""
    uv_lock: str = ""
    pylock: str = ""

    @property
    def files(self) -> dict[str, str]:
        """Returns the texts by the names of the files."""
        texts = {PYPROJECT: self.pyproject, UV_LOCK: self.uv_lock, PYLOCK: self.pylock}
        return {name: text for name, text in texts.items() if text}


def is_project(text: str) -> bool:
    """Returns whether the text is that of a project and not of a requirements file, in which no line begins
    with a bracket."""
    return bool(_PROJECT.search(text) or _PACKAGES.search(text))


def split_project(text: str) -> ProjectSource:
    """Returns the files of the text. Raises SpecError if one is missing or too large. A uv.lock beside
    pyproject.toml is not read: that takes long for lists."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise SpecError("pyproject", f"the files must have at most {MAX_BYTES // 2**20} MiB together")
    first, separator, second = text.partition(SEPARATOR)
    if separator:
        return ProjectSource(pyproject=first.strip("\n"), uv_lock=second.strip("\n"))
    data = parse_toml(text, PYLOCK if _PACKAGES.search(text) else PYPROJECT)
    if "package" in data and "project" not in data:
        raise SpecError(
            "pyproject",
            "this is uv.lock alone; give pyproject.toml too: as a second file, or before it in one text with "
            f"the line {SEPARATOR} between them",
        )
    return ProjectSource(pylock=text) if "packages" in data else ProjectSource(pyproject=text)


def join_project(pyproject: str, uv_lock: str) -> str:
    """Returns both files as one text."""
    return f"{pyproject.rstrip()}\n{SEPARATOR}\n{uv_lock.strip()}\n" if uv_lock else pyproject


def join_files(texts: Sequence[str]) -> str:
    """Returns the source that uploaded files are together: one file, or pyproject.toml and uv.lock in any
    order. Raises SpecError for others."""
    if len(texts) == 1:
        return texts[0]
    locks = [text for text in texts if "package" in _tables_of(text)]
    projects = [text for text in texts if "project" in _tables_of(text)]
    if len(texts) != 2 or len(locks) != 1 or len(projects) != 1:
        raise SpecError("pyproject", "choose one file, or pyproject.toml and uv.lock together")
    return join_project(projects[0], locks[0])


def _tables_of(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """Raises SpecError, which names the file and the line, if the text is not TOML."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        field = {UV_LOCK: "uv_lock", PYLOCK: "pylock"}.get(file, "pyproject")
        raise SpecError(field, f"{file} is not valid TOML: {error}"[:300]) from error
