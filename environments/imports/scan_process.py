"""Runs the scan of a source's imports in a process of its own, with limits of time and memory."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.imports import source_scan
from environments.resolving import limited

log = logging.getLogger(__name__)
MAX_S = 8
MAX_CPU_S = 6
MAX_MEMORY_BYTES = 2**30


@dataclass(frozen=True)
class ImportedModule:
    """`name`: dotted, as it is imported; `path`, `line`: where."""

    name: str
    path: str
    line: int

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class SourceImports:
    """What a script and the modules of its source import whenever they run. `is_complete`: every file that
    may matter was read. `is_opaque`: the script may get modules from elsewhere, so none is certain to be
    missing. `mentions_logger`: a file of the source names a program that logs metrics; None = unknown."""

    modules: tuple[ImportedModule, ...] = ()
    is_complete: bool = False
    is_opaque: bool = False
    mentions_logger: bool | None = None

    def imports(self, *tops: str) -> bool:
        return any(module.top in tops for module in self.modules)


def scan_source(path: Path, entry: str, folder: str) -> SourceImports:
    """Returns the imports of the script `entry` in the zip or folder `path`; `folder`: where its own modules
    lie, from the root. Knows nothing of a source that it cannot read within the limits."""
    limits = [MAX_MEMORY_BYTES, MAX_CPU_S, MAX_MEMORY_BYTES]
    command = [
        *(sys.executable, "-I", "-S", limited.__file__, *map(str, limits)),
        *(sys.executable, "-I", "-S", source_scan.__file__, str(path), entry, folder),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=MAX_S, check=True, stdin=subprocess.DEVNULL, env={}
        )
        return imports_of(json.loads(done.stdout))
    except (subprocess.SubprocessError, ValueError, KeyError) as error:
        # A hostile source ends the process; the run itself is not refused for it.
        log.warning("The imports of %s in %s could not be scanned: %s", entry, path.name, error)
        return SourceImports()


def imports_of(data: dict[str, Any]) -> SourceImports:
    """Returns what the scan's JSON says."""
    return SourceImports(
        tuple(ImportedModule(*item) for item in data["imports"]),
        data["is_complete"],
        data["is_opaque"],
        data["mentions_logger"],
    )


def imports_to_json(imports: SourceImports) -> dict[str, Any]:
    return {
        "imports": [[item.name, item.path, item.line] for item in imports.modules],
        "is_complete": imports.is_complete,
        "is_opaque": imports.is_opaque,
        "mentions_logger": imports.mentions_logger,
    }
