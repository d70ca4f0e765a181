"""Sections that higher floors add to the settings page: each app adds its own when it is ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workspaces.access import Principal


@dataclass(frozen=True)
class Section:
    """A section of the settings page. `context` returns the data of a person, which `template` finds under
    the name `section`."""

    template: str
    context: Callable[[Principal], Any]


SECTIONS: list[Section] = []
