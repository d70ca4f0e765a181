"""Who else notes the datasets of new runs. Apps above name modules here, when no models are loaded yet."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datastores.models import DatasetVersion
    from jobs.models import Run

# Dotted names of modules with the function of InputRecorder.
MODULES: list[str] = []


class InputRecorder(Protocol):
    """The function of a module in MODULES."""

    def record_inputs(self, run: Run, versions: Mapping[str, DatasetVersion]) -> None:
        """Notes the versions that a new run reads, by the names of its inputs."""


def recorders() -> Iterator[InputRecorder]:
    return (cast("InputRecorder", import_module(name)) for name in MODULES)
