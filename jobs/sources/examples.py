"""The built-in examples: examples/<name>/example.json. The script is in the same folder or in that of another
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
    """A built-in example. `spec`: RunSpec JSON whose source is this example, or another one whose script it
    starts differently. `folder`: the folder of that source."""

    name: str
    title: str
    sentence: str
    framework: str
    spec: dict[str, Any]
    folder: Path


def examples() -> tuple[Example, ...]:
    """Returns all examples by framework, simple ones first."""
    return _read(Path(settings.BASE_DIR) / "examples")


def example(name: str) -> Example:
    """Returns the example of that name. Raises SpecError with the existing names if there is none."""
    for item in examples():
        if item.name == name:
            return item
    existing = ", ".join(item.name for item in examples()) or "none"
    raise SpecError("source.name", f"there is no example {name!r}; there are: {existing}")


def paths(name: str) -> tuple[str, ...]:
    """Returns the paths of the files that a snapshot of the example contains."""
    return tuple(read_folder(example(name).folder).paths)


# The examples belong to the installation and do not change while the process runs.
@cache
def _read(root: Path) -> tuple[Example, ...]:
    examples = []
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        described = folder / DESCRIPTION
        if NAME.match(folder.name) and described.is_file():
            data = json.loads(described.read_text())
            examples.append(
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
        sorted(examples, key=lambda item: (order.index(item.framework), item.name != "hello", item.name))
    )
