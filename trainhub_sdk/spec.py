"""What a run is to do, built in Python: the RunSpec of the API (`POST /api/v1/runs/`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from trainhub_sdk.errors import TrainHubError

Argument = Union[str, int, float, Path]


@dataclass
class PyTorch:
    """Processes with the variables that `torch.distributed` needs. `process_count`: on all nodes together;
    None = one on each node."""

    process_count: int | None = None
    node_count: int = 1
    communication_backend: str = "nccl"

    def to_json(self) -> dict[str, Any]:
        """Returns the field `distribution` of the API."""
        return {"type": "pytorch", **vars(self)}


@dataclass
class Mpi:
    """Processes that mpirun starts."""

    process_count_per_node: int = 1
    node_count: int = 1

    def to_json(self) -> dict[str, Any]:
        """Returns the field `distribution` of the API."""
        return {"type": "mpi", **vars(self)}


@dataclass
class TensorFlow:
    """Processes with TF_CONFIG, each on a node of its own if there are enough."""

    worker_count: int = 1
    parameter_server_count: int = 0

    def to_json(self) -> dict[str, Any]:
        """Returns the field `distribution` of the API."""
        return {"type": "tensorflow", **vars(self)}


Distribution = Union[PyTorch, Mpi, TensorFlow]


@dataclass
class RunSpec:
    """Either `script` with `arguments`, or `command`. No shell interprets either; `$NAME` in them is replaced
    in each process.

    `environment`: the name of one, with `@VERSION` if it is not to be the newest. `inputs`: a name for each,
    and a dataset (`"birds"`, `"birds@3"`) or an object as in the API. `gpus_per_node`: a number, or "all" for
    every GPU of each node. `other`: further fields of the API, as they are; they replace what the others
    say."""

    script: str = ""
    arguments: Iterable[Argument] = ()
    command: Iterable[Argument] = ()
    experiment: str = ""
    display_name: str = ""
    distribution: Distribution | None = None
    cluster: str = ""
    node_count: int | None = None
    gpus_per_node: int | str = 0
    environment: str = ""
    environment_variables: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    retries: int = 0
    timeout_s: int | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the object for the API, without the source."""
        resources = {
            "cluster": self.cluster,
            "node_count": self.node_count,
            "gpus_per_node": self.gpus_per_node,
        }
        fields = {
            "script": self.script,
            "arguments": [str(argument) for argument in self.arguments],
            "command": [str(argument) for argument in self.command],
            "experiment": self.experiment,
            "display_name": self.display_name,
            "distribution": self.distribution.to_json() if self.distribution else None,
            "resources": _without_empty(resources),
            "environment": named_version(self.environment),
            "environment_variables": dict(self.environment_variables),
            "inputs": {name: input_from_text(value) for name, value in self.inputs.items()},
            "tags": dict(self.tags),
            "limits": _without_empty({"retries": self.retries, "timeout_s": self.timeout_s}),
        }
        return {**_without_empty(fields), **self.other}


def read_spec_file(path: Path) -> dict[str, Any]:
    """Returns the RunSpec in a JSON file. Raises TrainHubError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TrainHubError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise TrainHubError(f"{path} is not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise TrainHubError(f"{path} must hold a JSON object, a RunSpec.")
    return data


def named_version(text: str) -> dict[str, str]:
    """Returns `NAME` or `NAME@VERSION` as the object of the field `environment`."""
    name, _, version = text.partition("@")
    return _without_empty({"name": name, "version": version})


def input_from_text(value: Any) -> dict[str, Any]:
    """Returns `DATASET` or `DATASET@VERSION` as an object of the field `inputs`; an object is returned as it
    is. Raises TrainHubError."""
    if not isinstance(value, str):
        return dict(value)
    name, _, version = value.partition("@")
    if not version:
        return {"dataset": name}
    if not version.isdigit():
        raise TrainHubError(f"inputs: {value!r} names no version: write it as {name}@3, or without @.")
    return {"dataset": name, "version": int(version)}


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ("", 0, None, [], {})}
