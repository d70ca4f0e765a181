"""Until every part exists: import what is there, say what is not. Goes away with the last part."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


def optional(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ImportError as error:
        sys.stderr.write(f"not there yet: {name} ({error})\n")
        return None
