"""The built-in examples: examples/<name>/example.json, and the scripts that it starts beside it or in another
example."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from jobs.sources.folders import read_folder
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import FRAMEWORKS

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
DESCRIPTION = "example.json"


@dataclass(frozen=True)
class Example:
    """`spec` is RunSpec JSON; its source is this example, or the one whose script it starts in another way.
    `folder` holds that script."""

    name: str
    title: str
    sentence: str
    framework: str
    spec: dict[str, Any]
    folder: Path


def examples() -> tuple[Example, ...]:
    """In the order in which a newcomer should meet them: what needs nothing first."""
    return _read(Path(settings.BASE_DIR) / "examples")


def example(name: str) -> Example:
    """Raises SpecError naming those there are."""
    for item in examples():
        if item.name == name:
            return item
    known = ", ".join(item.name for item in examples()) or "none"
    raise SpecError("source.name", f"there is no example {name!r}; there are: {known}")


def paths(name: str) -> tuple[str, ...]:
    """The files that the example's snapshot will hold."""
    return tuple(read_folder(example(name).folder).paths)


@cache
def _read(root: Path) -> tuple[Example, ...]:
    found = []
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        described = folder / DESCRIPTION
        if NAME.match(folder.name) and described.is_file():
            data = json.loads(described.read_text())
            found.append(
                Example(
                    name=folder.name,
                    title=data["title"],
                    sentence=data["sentence"],
                    framework=data["framework"],
                    spec=data["spec"],
                    folder=root / data["spec"]["source"]["name"],
                )
            )
    order = tuple(FRAMEWORKS)
    return tuple(
        sorted(found, key=lambda item: (order.index(item.framework), item.name != "hello", item.name))
    )
