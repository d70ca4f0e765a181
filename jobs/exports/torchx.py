"""A spec as a component of torchx, a function that returns an AppDef:
`torchx run component.py:trainhub_run`."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.exports.commands import timeout_prefix
from jobs.exports.export import SpecExport
from jobs.exports.field_notes import change_note, field_notes
from jobs.exports.names import dns_name, mebibytes
from jobs.exports.node_script import MASTER_PORT, needs_addresses, node_lines
from jobs.exports.note import Note, Outcome
from jobs.exports.preamble import preamble_lines
from jobs.exports.process_shape import ProcessShape, process_shape
from jobs.exports.spec_comment import comment_lines
from trainhub_launch.spec import RunSpec

FILE = "component.py"
_FIELDS_IN_FILE = (
    "experiment",
    "display_name",
    "resources.gpus_per_node",
    "resources.memory",
    "resources.cpus",
    "limits.timeout_s",
    "limits.grace_s",
    "limits.retries",
    "environment_variables",
    "tags",
)


def render(spec: RunSpec) -> SpecExport:
    shape = process_shape(spec)
    lines = [*comment_lines(spec), *_constants(spec, shape), *_function(spec, shape)]
    return SpecExport({FILE: "\n".join(lines)}, (*_notes(spec, shape), *field_notes(spec, _FIELDS_IN_FILE)))


def _constants(spec: RunSpec, shape: ProcessShape) -> list[str]:
    variables = spec.environment_variables
    values = {name: item.value or "" for name, item in variables.items() if item.secret is None}
    secrets = [name for name, item in variables.items() if item.secret is not None]
    return [
        "import os",
        "",
        "import torchx.specs as specs",
        "",
        "SCRIPT = [",
        *(f"    {line!r}," for line in _script(spec, shape)),
        "]",
        f"ENVIRONMENT = {values!r}",
        "# Their values come from the environment of whoever starts it.",
        f"SECRETS = {secrets!r}",
    ]


def _function(spec: RunSpec, shape: ProcessShape) -> list[str]:
    resources = spec.resources
    cpus = -int(-(resources.cpus or 1) // 1)
    memory = mebibytes(resources.memory) if resources.memory else 1024
    name = {"display_name": spec.display_name} if spec.display_name else {}
    metadata = {"experiment": spec.experiment, **name, **spec.tags}
    return [
        "",
        "",
        'def trainhub_run(image: str = "") -> specs.AppDef:',
        '    """Returns the run that TrainHub has described."""',
        "    variables = {**ENVIRONMENT, **{name: os.environ[name] for name in SECRETS}}",
        "    # torchx replaces ${names} of its own, and takes `$$` for a dollar.",
        '    env = {name: value.replace("$", "$$") for name, value in variables.items()}',
        '    names = {"NODE_RANK": specs.macros.replica_id, "RANK0_NAME": specs.macros.rank0_env}',
        "    trainer = specs.Role(",
        '        name="trainer",',
        "        image=image,",
        '        entrypoint="bash",',
        '        args=["-c", "\\n".join(SCRIPT).replace("$", "$$")],',
        "        env={**env, **names},",
        f"        num_replicas={shape.nodes},",
        f"        max_retries={spec.limits.retries},",
        f"        resource=specs.Resource(cpu={cpus}, gpu={resources.gpus_per_node}, memMB={memory}),",
        "    )",
        f"    metadata = {metadata!r}",
        f"    name = {dns_name(spec.display_name or spec.experiment)!r}",
        "    return specs.AppDef(name=name, roles=[trainer], metadata=metadata)",
        "",
    ]


def _script(spec: RunSpec, shape: ProcessShape) -> Iterator[str]:
    yield "set -eu"
    # The name of the variable with the address of the first node depends on the scheduler.
    yield 'export MASTER_ADDR="${!RANK0_NAME:-localhost}"'
    yield f"export MASTER_PORT={MASTER_PORT}"
    if needs_addresses(shape):
        yield 'read -r -a nodes <<< "${TRAINHUB_NODES:?is not set: it is the addresses of all nodes}"'
    yield from preamble_lines(spec, processes=shape.per_node, with_variables=False)
    yield from node_lines(spec, shape, timeout_prefix(spec))


def _notes(spec: RunSpec, shape: ProcessShape) -> Iterator[Note]:
    resources = spec.resources
    if resources.all_gpus:
        yield Note("resources.gpus_per_node", Outcome.NONE, "name the number of GPUs in Resource")
    if not resources.memory or not resources.cpus:
        yield change_note("resources", "torchx needs numbers: 1 core and 1 GiB stand for what is not set")
    if needs_addresses(shape):
        yield change_note(
            "distribution",
            "torchx knows the address of the first node only: set TRAINHUB_NODES to those of all",
        )
    if spec.limits.timeout_s:
        yield change_note("limits.timeout_s", "the program timeout ends the processes of each node by itself")
    for name, variable in spec.environment_variables.items():
        if variable.secret is not None:
            yield change_note(
                f"environment_variables.{name}",
                f"the value of the secret {variable.secret!r} is not in the file: set {name} first",
            )
