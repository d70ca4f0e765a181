"""Lines of bash that give a script the variables that it would have on a hub."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.exports.shell_words import quote
from trainhub_launch.data.outputs import OutputPlace
from trainhub_launch.processes.inputs import AZURE_PREFIX, FILES_SUFFIX, PREFIX
from trainhub_launch.spec import REFERENCE, DataInput, RunSpec


def preamble_lines(
    spec: RunSpec,
    *,
    processes: int,
    with_variables: bool = True,
    input_values: Mapping[str, str] | None = None,
) -> list[str]:
    """`processes`: how many share the cores of a node; `with_variables`: also those of the user;
    `input_values`: for each input a word of bash with its path, None = whoever starts the script sets it."""
    lines = ["export PYTHONUNBUFFERED=1"]
    if spec.resources.cpus:
        lines.append(f"export OMP_NUM_THREADS={max(1, int(spec.resources.cpus) // processes)}")
    if not spec.resources.gpus_per_node and not spec.resources.all_gpus:
        # Without GPUs the Hugging Face Trainer would train a model of its own in each process.
        lines.append("export CUDA_VISIBLE_DEVICES= ACCELERATE_USE_CPU=true")
    lines.append(f'export TRAINHUB_CHECKPOINT_DIR="$PWD"/{quote(spec.checkpoint.path)}')
    lines.append('mkdir -p outputs "$TRAINHUB_CHECKPOINT_DIR"')
    for name, data_input in spec.inputs.items():
        lines += _input(name, data_input, (input_values or {}).get(name, ""))
    return lines + (variable_lines(spec) if with_variables else [])


def variable_lines(spec: RunSpec) -> list[str]:
    """Returns the user's variables; for a secret a line that ends the script unless it is set."""
    return [
        f"export {name}={quote(variable.value or '')}"
        if variable.secret is None
        else required(name, "a secret")
        for name, variable in spec.environment_variables.items()
    ]


def required(name: str, what: str) -> str:
    return f': "${{{name}:?is not set: it is {what}}}"'


def describe_input(data_input: DataInput) -> str:
    """Returns in words where the data of an input lies."""
    if data_input.dataset:
        version = f", version {data_input.version}" if data_input.version else ""
        return f"the dataset {data_input.dataset}{version}"
    folder = f"{data_input.path} in " if data_input.path else ""
    return f"{folder}the datastore {data_input.datastore}"


def describe_outputs(outputs: OutputPlace) -> str:
    folder = f"{outputs.path} in " if outputs.path else ""
    return f"{folder}the datastore {outputs.datastore}"


def _input(name: str, data_input: DataInput, value: str) -> list[str]:
    variable = f"{PREFIX}{name.upper()}"
    lines = [f"export {variable}={value}" if value else required(variable, "the folder with an input")]
    lines.append(f'export {AZURE_PREFIX}{name}="${variable}"')
    if data_input.mode == REFERENCE:
        lines.append(required(f"{variable}{FILES_SUFFIX}", "the file with the addresses of an input"))
    return lines
