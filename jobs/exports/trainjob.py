"""A spec as a TrainJob of Kubeflow Trainer 2: `kubectl apply -f trainjob.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jobs.exports.export import SpecExport
from jobs.exports.field_notes import change_note, field_notes
from jobs.exports.names import dns_name, mebibytes
from jobs.exports.node_script import (
    MASTER_PORT,
    RANK_FUNCTION,
    mpi_rank_lines,
    needs_addresses,
    node_lines,
    rank_function,
)
from jobs.exports.note import Note, Outcome
from jobs.exports.preamble import preamble_lines
from jobs.exports.process_shape import MPI, PYTORCH, ProcessShape, process_shape
from jobs.exports.yaml_text import document_text
from trainhub_launch.spec import RunSpec

FILE = "trainjob.yaml"
IMAGE = "REGISTRY/IMAGE-WITH-YOUR-CODE"
SECRET = "trainhub-secrets"  # noqa: S105 - a name
PREFIX = "trainhub/"
_REFERENCE = re.compile(r"\$(?=[$(])")
_FIELDS_IN_FILE = (
    "source",
    "experiment",
    "display_name",
    "resources.gpus_per_node",
    "resources.memory",
    "resources.cpus",
    "resources.disk",
    "limits.timeout_s",
    "environment_variables",
    "tags",
)


def render(spec: RunSpec) -> SpecExport:
    shape = process_shape(spec)
    name = dns_name(spec.display_name or spec.experiment)
    trainer: dict[str, Any] = {
        "image": IMAGE,
        "numNodes": shape.nodes,
        "numProcPerNode": shape.per_node,
        "command": ["bash", "-c"],
        "args": ["\n".join(_script(spec, shape, name))],
        "env": _env(spec),
        "resourcesPerNode": _resources(spec),
    }
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "annotations": _annotations(spec)},
        "spec": {
            "runtimeRef": {"name": "mpi-distributed" if shape.starter == MPI else "torch-distributed"},
            **({"activeDeadlineSeconds": spec.limits.timeout_s} if spec.limits.timeout_s else {}),
            "trainer": {key: value for key, value in trainer.items() if value},
        },
    }
    notes = (*_notes(spec, shape), *field_notes(spec, _FIELDS_IN_FILE))
    return SpecExport({FILE: document_text(spec, job)}, notes)


def _annotations(spec: RunSpec) -> dict[str, str]:
    # Annotations, because labels allow neither spaces nor most characters.
    names = {f"{PREFIX}experiment": spec.experiment, f"{PREFIX}display-name": spec.display_name}
    tags = {
        f"{PREFIX}tag-{number}": f"{name}={value}" for number, (name, value) in enumerate(spec.tags.items())
    }
    return {**names, **tags}


def _env(spec: RunSpec) -> list[dict[str, Any]]:
    return [
        {"name": name, "value": _escape(variable.value or "")}
        if variable.secret is None
        else {"name": name, "valueFrom": {"secretKeyRef": {"name": SECRET, "key": name}}}
        for name, variable in spec.environment_variables.items()
    ]


def _resources(spec: RunSpec) -> dict[str, Any] | None:
    resources = spec.resources
    limits: dict[str, str] = {}
    if resources.cpus:
        limits["cpu"] = f"{resources.cpus:g}"
    if resources.memory:
        limits["memory"] = f"{mebibytes(resources.memory)}Mi"
    if resources.disk:
        limits["ephemeral-storage"] = f"{mebibytes(resources.disk)}Mi"
    if resources.gpus_per_node:
        limits["nvidia.com/gpu"] = str(resources.gpus_per_node)
    return {"limits": limits} if limits else None


def _script(spec: RunSpec, shape: ProcessShape, name: str) -> list[str]:
    lines = ["set -eu", *preamble_lines(spec, processes=shape.per_node, with_variables=False)]
    if shape.starter == MPI:
        # The launcher of the runtime has the list of hosts.
        lines += rank_function(spec, mpi_rank_lines(shape))
        lines.append(f"mpirun -np {shape.world} --bind-to none {RANK_FUNCTION}")
    else:
        lines += ['export NODE_RANK="$PET_NODE_RANK" MASTER_ADDR="$PET_MASTER_ADDR"']
        lines += [f'export MASTER_PORT="${{PET_MASTER_PORT:-{MASTER_PORT}}}"']
        if needs_addresses(shape):
            hosts = " ".join(f"{name}-node-0-{node}.{name}" for node in range(shape.nodes))
            lines.append(f"nodes=({hosts})")
        lines += node_lines(spec, shape)
    return [_escape(line) for line in lines]


def _escape(text: str) -> str:
    """Returns a text that Kubernetes takes as it stands: it would replace $(NAME), and `$$` by one dollar."""
    return _REFERENCE.sub("$$", text)


def _notes(spec: RunSpec, shape: ProcessShape) -> Iterator[Note]:
    yield change_note(
        "source", f"a TrainJob has no code: build an image with it, and name it instead of {IMAGE}"
    )
    if spec.resources.all_gpus:
        yield Note("resources.gpus_per_node", Outcome.NONE, "name the number of GPUs below resourcesPerNode")
    if not shape.starter and spec.distribution is not None:
        yield change_note(
            "distribution", "its processes find each other by the names of the pods of the TrainJob"
        )
    if shape.starter not in (PYTORCH, MPI):
        yield change_note(
            "distribution", "runs in the runtime torch-distributed, which sets the rank of each node"
        )
    for name, variable in spec.environment_variables.items():
        if variable.secret is not None:
            yield change_note(
                f"environment_variables.{name}",
                f"is read from {SECRET}: kubectl create secret generic {SECRET} --from-literal={name}=…",
            )
