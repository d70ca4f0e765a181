"""What higher floors show on the settings page: each app adds its own when it is ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workspaces.access import Principal


@dataclass(frozen=True)
class Section:
    """`template` finds what `told` says as `told`."""

    template: str
    told: Callable[[Principal], Any]


SECTIONS: list[Section] = []
