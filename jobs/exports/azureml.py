"""A spec as a command job of Azure Machine Learning, version 2: `az ml job create --file job.yml`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.exports.export import SpecExport, command_line
from jobs.exports.field_notes import change_note, field_notes
from jobs.exports.node_script import elastic_lines, needs_addresses, node_lines
from jobs.exports.note import Note, Outcome
from jobs.exports.preamble import preamble_lines, required
from jobs.exports.process_shape import MPI, PYTORCH, ProcessShape, process_shape
from jobs.exports.yaml_text import document_text
from trainhub_launch.frameworks.tensorflow.configuration import TensorflowConfiguration
from trainhub_launch.spec import DOWNLOAD, MOUNT, REFERENCE, DataInput, EnvironmentRef, RunSpec

FILE = "job.yml"
SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
MODES = {MOUNT: "ro_mount", DOWNLOAD: "download", REFERENCE: "direct"}
_FIELDS_IN_FILE = (
    "distribution",
    "experiment",
    "display_name",
    "limits.timeout_s",
    "inputs",
    "resources.cluster",
    "tags",
    "environment",
    "environment_variables",
)


def render(spec: RunSpec) -> SpecExport:
    shape = process_shape(spec)
    job: dict[str, Any] = {
        "$schema": SCHEMA,
        "type": "command",
        "display_name": spec.display_name,
        "experiment_name": spec.experiment,
        "code": ".",
        "command": "\n".join(_command(spec, shape)),
        "environment": _environment(spec.environment),
        "environment_variables": _variables(spec),
        "inputs": {name: _input(item) for name, item in spec.inputs.items()},
        "resources": {"instance_count": shape.nodes},
        "distribution": _distribution(spec, shape),
        "limits": {"timeout": spec.limits.timeout_s} if spec.limits.timeout_s else None,
        "tags": dict(spec.tags),
    }
    notes = (*_notes(spec, shape), *field_notes(spec, _FIELDS_IN_FILE))
    return SpecExport({FILE: document_text(spec, job)}, notes)


def _command(spec: RunSpec, shape: ProcessShape) -> Iterator[str]:
    yield "set -eu"
    values = {name: f'"${{{{inputs.{name}}}}}"' for name in spec.inputs}
    yield from preamble_lines(spec, processes=shape.per_node, with_variables=False, input_values=values)
    for name, variable in spec.environment_variables.items():
        if variable.secret is not None:
            yield required(name, "a secret")
    native = shape.starter or isinstance(spec.distribution, TensorflowConfiguration)
    if not native and (shape.nodes > 1 or spec.distribution is not None):
        yield from node_lines(spec, shape)
        return
    if shape.is_launcher:
        yield from elastic_lines(spec)
    yield command_line(spec)


def _environment(environment: EnvironmentRef) -> str:
    version = environment.version
    return f"azureml:{environment.name}" + (f":{version}" if version.isalnum() else "@latest")


def _variables(spec: RunSpec) -> dict[str, str]:
    return {
        name: variable.value or ""
        for name, variable in spec.environment_variables.items()
        if variable.secret is None
    }


def _input(item: DataInput) -> dict[str, str]:
    if item.dataset:
        path = f"azureml:{item.dataset}" + (f":{item.version}" if item.version else "@latest")
    else:
        path = f"azureml://datastores/{item.datastore}/paths/{item.path}"
    return {"type": "uri_folder", "path": path} | ({"mode": MODES[item.mode]} if item.mode else {})


def _distribution(spec: RunSpec, shape: ProcessShape) -> dict[str, Any] | None:
    distribution = spec.distribution
    if shape.starter in (PYTORCH, MPI):
        return {"type": shape.starter, "process_count_per_instance": shape.per_node}
    if isinstance(distribution, TensorflowConfiguration):
        return {
            "type": "tensorflow",
            "worker_count": distribution.worker_count,
            "parameter_server_count": distribution.parameter_server_count,
        }
    return None


def _notes(spec: RunSpec, shape: ProcessShape) -> Iterator[Note]:
    yield Note("resources.cluster", Outcome.NONE, "add compute: azureml:NAME, the cluster on which it runs")
    for name, variable in spec.environment_variables.items():
        if variable.secret is not None:
            yield change_note(
                f"environment_variables.{name}",
                f"the secret {variable.secret!r} is not in the file: read it from a key vault, or set {name}",
            )
    yield change_note(
        "environment", f"{_environment(spec.environment)} must be an environment of your workspace there"
    )
    for name, item in spec.inputs.items():
        yield change_note(f"inputs.{name}", f"{_input(item)['path']} must exist in your workspace there")
    tasks = isinstance(spec.distribution, TensorflowConfiguration) and spec.distribution.worker_count
    if needs_addresses(shape) and tasks and tasks != shape.nodes:
        yield change_note("resources.node_count", "Azure ML decides which task runs on which node")
