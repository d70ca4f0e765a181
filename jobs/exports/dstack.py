"""A spec as a task of dstack: `dstack apply -f task.dstack.yml`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jobs.exports.export import SpecExport
from jobs.exports.field_notes import change_note, field_notes
from jobs.exports.names import dns_name
from jobs.exports.node_script import MASTER_PORT, needs_addresses, node_lines
from jobs.exports.note import Note, Outcome
from jobs.exports.preamble import preamble_lines
from jobs.exports.process_shape import MPI, ProcessShape, process_shape
from jobs.exports.skypilot import whole_gib
from jobs.exports.yaml_text import document_text
from trainhub_launch.frameworks.tensorflow.configuration import TensorflowConfiguration
from trainhub_launch.spec import RunSpec

FILE = "task.dstack.yml"
# A hub has -10 to 10 with 0 for usual, dstack 0 to 100 with 0 for usual.
PRIORITY = 10
TAG_NAME = re.compile(r"[_\-a-zA-Z0-9]{1,60}")
TAG_VALUE = re.compile(r"[a-zA-Z0-9 .:/=_\-+@]{0,256}")
_FIELDS_IN_FILE = (
    "display_name",
    "resources.gpus_per_node",
    "resources.memory",
    "resources.cpus",
    "resources.disk",
    "limits.timeout_s",
    "limits.grace_s",
    "limits.retries",
    "environment_variables",
    "priority",
    "tags",
)


def render(spec: RunSpec) -> SpecExport:
    shape = process_shape(spec)
    limits = spec.limits
    task: dict[str, Any] = {
        "type": "task",
        "name": dns_name(spec.display_name or spec.experiment),
        "nodes": shape.nodes,
        "shell": "bash",
        "files": [".:/workflow"],
        "working_dir": "/workflow",
        "env": _env(spec),
        "commands": ["\n".join(_commands(spec, shape))],
        "resources": _resources(spec),
        "max_duration": f"{limits.timeout_s}s" if limits.timeout_s else None,
        # dstack reads 0 as 'not set'.
        "stop_duration": f"{max(1, limits.grace_s)}s",
        "retry": {"on_events": ["interruption", "error"], "duration": "1d"} if limits.retries else None,
        "priority": spec.priority * PRIORITY if spec.priority > 0 else None,
        "stop_criteria": "master-done" if _ends_with_head(spec, shape) else None,
        "tags": {name: value for name, value in spec.tags.items() if _holds_tag(name, value)},
    }
    return SpecExport({FILE: document_text(spec, task)}, (*_notes(spec), *field_notes(spec, _FIELDS_IN_FILE)))


def _ends_with_head(spec: RunSpec, shape: ProcessShape) -> bool:
    servers = (
        isinstance(spec.distribution, TensorflowConfiguration) and spec.distribution.parameter_server_count
    )
    return shape.nodes > 1 and (shape.starter == MPI or bool(servers))


def _env(spec: RunSpec) -> dict[str, str]:
    return {
        # dstack takes `$$` for a dollar here, and `${{` for one of its own expressions.
        name: (variable.value or "").replace("$", "$$")
        if variable.secret is None
        else f"${{{{ secrets.{secret_name(variable.secret)} }}}}"
        for name, variable in spec.environment_variables.items()
    }


def secret_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _resources(spec: RunSpec) -> dict[str, Any]:
    resources = spec.resources
    out: dict[str, Any] = {}
    if resources.gpus_per_node or resources.all_gpus:
        out["gpu"] = resources.gpus_per_node or "1.."
    if resources.cpus:
        out["cpu"] = f"{-int(-resources.cpus // 1)}.."
    if resources.memory:
        out["memory"] = f"{whole_gib(resources.memory)}GB.."
    if resources.disk:
        out["disk"] = f"{whole_gib(resources.disk)}GB.."
    return out


def _commands(spec: RunSpec, shape: ProcessShape) -> Iterator[str]:
    yield "set -eu"
    yield 'export NODE_RANK="$DSTACK_NODE_RANK" MASTER_ADDR="$DSTACK_MASTER_NODE_IP"'
    yield f"export MASTER_PORT={MASTER_PORT}"
    if needs_addresses(shape):
        yield 'mapfile -t nodes <<< "$DSTACK_NODES_IPS"'
    yield from preamble_lines(spec, processes=shape.per_node, with_variables=False)
    yield from node_lines(spec, shape)
    if shape.starter == MPI and shape.nodes > 1:
        # Their ssh must be there until mpirun of the first node has ended, which ends the run.
        yield 'if [ "$NODE_RANK" != 0 ]; then sleep infinity; fi'


def _holds_tag(name: str, value: str) -> bool:
    return bool(TAG_NAME.fullmatch(name) and TAG_VALUE.fullmatch(value))


def _notes(spec: RunSpec) -> Iterator[Note]:
    resources, limits = spec.resources, spec.limits
    name = dns_name(spec.display_name or spec.experiment)
    if spec.display_name and name != spec.display_name:
        yield change_note("display_name", f"becomes {name!r}: dstack allows small letters, digits and '-'")
    if resources.all_gpus:
        yield change_note("resources.gpus_per_node", "all GPUs of each node become at least one (gpu: 1..)")
    for field, size in (("memory", resources.memory), ("disk", resources.disk)):
        if size and size % 2**30:
            yield change_note(f"resources.{field}", f"is rounded up to {whole_gib(size)} GB")
    if not limits.grace_s:
        yield change_note("limits.grace_s", "0 s become 1 s, the shortest time that dstack has")
    if limits.retries:
        yield change_note(
            "limits.retries", f"{limits.retries} becomes retry for a day: dstack counts no attempts"
        )
    if spec.priority < 0:
        yield Note(
            "priority", Outcome.NONE, f"{spec.priority} is left out: dstack has none below the usual one"
        )
    elif spec.priority:
        yield change_note("priority", f"{spec.priority} becomes {spec.priority * PRIORITY} of 100")
    for tag, value in spec.tags.items():
        if not _holds_tag(tag, value):
            yield Note(
                f"tags.{tag}", Outcome.NONE, "dstack allows only some characters in names and values of tags"
            )
    for variable_name, variable in spec.environment_variables.items():
        if variable.secret is not None:
            secret = secret_name(variable.secret)
            yield change_note(
                f"environment_variables.{variable_name}",
                f"is read from a secret of dstack: set it with dstack secret set {secret}",
            )
