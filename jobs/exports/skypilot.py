"""A spec as a task of SkyPilot: `sky launch task.yaml`, or `sky jobs launch task.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.exports.commands import timeout_prefix
from jobs.exports.export import SpecExport
from jobs.exports.field_notes import change_note, field_notes
from jobs.exports.names import dns_name
from jobs.exports.node_script import MASTER_PORT, needs_addresses, node_lines
from jobs.exports.note import Note
from jobs.exports.preamble import preamble_lines, required
from jobs.exports.process_shape import MPI, ProcessShape, process_shape
from jobs.exports.yaml_text import document_text
from trainhub_launch.spec import RunSpec

FILE = "task.yaml"
# SkyPilot wants the names of models, and takes the cheapest of several.
ACCELERATORS = ("H100", "A100-80GB", "A100", "L40S", "L4", "A10G", "V100", "T4")
GIB = 2**30
_FIELDS_IN_FILE = (
    "resources.gpus_per_node",
    "resources.memory",
    "resources.cpus",
    "resources.disk",
    "limits.timeout_s",
    "limits.grace_s",
    "limits.retries",
    "environment_variables",
    "display_name",
)


def render(spec: RunSpec) -> SpecExport:
    shape = process_shape(spec)
    variables = spec.environment_variables
    task: dict[str, Any] = {
        "name": dns_name(spec.display_name or spec.experiment),
        "workdir": ".",
        "num_nodes": shape.nodes,
        "resources": _resources(spec),
        "envs": {name: item.value or "" for name, item in variables.items() if item.secret is None},
        "secrets": {name: None for name, item in variables.items() if item.secret is not None},
        "run": "\n".join(_run(spec, shape)),
    }
    return SpecExport(
        {FILE: document_text(spec, task)}, (*_notes(spec, shape), *field_notes(spec, _FIELDS_IN_FILE))
    )


def whole_gib(size: int) -> int:
    """Returns a size in GiB, rounded up."""
    return -(-size // GIB)


def _resources(spec: RunSpec) -> dict[str, Any]:
    resources = spec.resources
    out: dict[str, Any] = {}
    if resources.gpus_per_node:
        out["accelerators"] = dict.fromkeys(ACCELERATORS, resources.gpus_per_node)
    if resources.cpus:
        out["cpus"] = f"{-int(-resources.cpus // 1)}+"
    if resources.memory:
        out["memory"] = f"{whole_gib(resources.memory)}+"
    if resources.disk:
        out["disk_size"] = whole_gib(resources.disk)
    if spec.limits.retries:
        out["job_recovery"] = {"strategy": "FAILOVER", "max_restarts_on_errors": spec.limits.retries}
    return out


def _run(spec: RunSpec, shape: ProcessShape) -> Iterator[str]:
    yield "set -eu"
    yield 'export NODE_RANK="$SKYPILOT_NODE_RANK"'
    if needs_addresses(shape):
        yield 'mapfile -t nodes <<< "$SKYPILOT_NODE_IPS"'
    yield 'MASTER_ADDR=$(head -n 1 <<< "$SKYPILOT_NODE_IPS")'
    yield f"MASTER_PORT={MASTER_PORT}"
    yield "export MASTER_ADDR MASTER_PORT"
    yield from preamble_lines(spec, processes=shape.per_node, with_variables=False)
    for name, variable in spec.environment_variables.items():
        if variable.secret is not None:
            yield required(name, "a secret")
    yield from node_lines(spec, shape, timeout_prefix(spec))


def _notes(spec: RunSpec, shape: ProcessShape) -> Iterator[Note]:
    resources = spec.resources
    name = dns_name(spec.display_name or spec.experiment)
    if spec.display_name and name != spec.display_name:
        yield change_note("display_name", f"becomes {name!r}")
    if resources.all_gpus:
        yield change_note("resources.gpus_per_node", "choose accelerators: the task names none")
    elif resources.gpus_per_node:
        yield change_note(
            "resources.gpus_per_node",
            f"a spec names no model: {resources.gpus_per_node} of any listed one; delete those "
            "that do not suit",
        )
    if spec.limits.timeout_s:
        yield change_note("limits.timeout_s", "the program timeout ends the processes of each node by itself")
    if spec.limits.retries:
        yield change_note("limits.retries", "only `sky jobs launch` starts a task again")
    if shape.starter == MPI and shape.nodes > 1:
        yield change_note(
            "distribution", "mpirun of the first node reaches the others through ssh without a password"
        )
    for variable_name, variable in spec.environment_variables.items():
        if variable.secret is not None:
            yield change_note(
                f"environment_variables.{variable_name}",
                f"the value of the secret {variable.secret!r} is not in the file: start it with "
                f"--secret {variable_name}",
            )
