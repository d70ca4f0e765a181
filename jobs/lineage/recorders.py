"""Who else notes the datasets of new runs. Apps above name modules here, when no models are loaded yet."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datastores.models import DatasetVersion
    from jobs.models import Run

# Dotted names of modules with the functions of InputRecorder.
MODULES: list[str] = []


class InputRecorder(Protocol):
    """The functions of a module in MODULES."""

    def record_inputs(self, run: Run, versions: Mapping[str, DatasetVersion]) -> None:
        """Notes the versions that a new run reads, by the names of its inputs."""

    def note_changed_inputs(self, run: Run, versions: Mapping[str, DatasetVersion]) -> None:
        """Notes that the run went on with files that are not exactly those of these versions. It may be
        called again."""


def recorders() -> Iterator[InputRecorder]:
    return (cast("InputRecorder", import_module(name)) for name in MODULES)
