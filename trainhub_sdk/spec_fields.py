"""The fields of a RunSpec, to say which one is meant where a name is misspelt. The hub decides: it may be
newer than this list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from trainhub_sdk.errors import TrainHubError

_SOURCE = ("type", "id", "name", "url", "ref", "path", "commit")
_DISTRIBUTION = (
    "type",
    "communication_backend",
    "process_count",
    "node_count",
    "process_count_per_node",
    "worker_count",
    "parameter_server_count",
)
# Field: the fields of its object; () for a field that holds no object, or one with names that people choose.
FIELDS: dict[str, tuple[str, ...]] = {
    "version": (),
    "experiment": (),
    "display_name": (),
    "source": _SOURCE,
    "script": (),
    "arguments": (),
    "command": (),
    "distribution": _DISTRIBUTION,
    "resources": ("cluster", "node_count", "gpus_per_node", "memory", "cpus", "disk"),
    "environment": ("name", "version"),
    "environment_variables": (),
    "limits": ("timeout_s", "grace_s", "retries"),
    "checkpoint": ("keep", "path", "resume_from", "number", "datastore", "datastore_path"),
    "inputs": (),
    "outputs": ("datastore", "path"),
    "priority": (),
    "tags": (),
}
MIN_LIKENESS = 0.82


def check_fields(spec: Mapping[str, Any]) -> None:
    """Raises TrainHubError for a field that does not exist and has nearly the name of one that does."""
    for path, names in _unknown(spec):
        field = path.rpartition(".")[2]
        near = get_close_matches(field, names, n=1, cutoff=MIN_LIKENESS)
        if near:
            parent = path[: len(path) - len(field)]
            raise TrainHubError(f"{path}: there is no such field of a spec; {parent}{near[0]} is meant?")


def set_field(spec: dict[str, Any], assignment: str) -> None:
    """Changes the spec as `resources.gpus_per_node=2` says: what stands behind `=` is JSON, else a text.
    Raises TrainHubError."""
    path, separator, text = assignment.partition("=")
    *parents, field = path.split(".")
    # Names that people choose may have dots: all behind the first one is the name.
    if parents and parents[0] in ("environment_variables", "tags"):
        parents, field = parents[:1], path.partition(".")[2]
    if not separator or not all([*parents, field]):
        raise TrainHubError(f"{assignment}: write it as FIELD=VALUE, such as resources.gpus_per_node=2.")
    inner = spec
    for name in parents:
        if not isinstance(inner.get(name), dict):
            inner[name] = {}
        inner = inner[name]
    try:
        inner[field] = json.loads(text)
    except ValueError:
        inner[field] = text


def _unknown(spec: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the path of each field that is not in the list, with the names of those beside it."""
    for name, value in spec.items():
        if name not in FIELDS:
            yield str(name), tuple(FIELDS)
        elif FIELDS[name] and isinstance(value, Mapping):
            yield from ((f"{name}.{key}", FIELDS[name]) for key in value if key not in FIELDS[name])
