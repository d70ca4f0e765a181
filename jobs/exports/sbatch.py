"""A spec as a batch script of Slurm that needs no TrainHub: `sbatch run.sbatch` in the folder of the code."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.exports.export import SpecExport
from jobs.exports.field_notes import change_note, field_notes
from jobs.exports.names import duration, mebibytes, plain_name
from jobs.exports.node_script import RANK_FUNCTION, elastic_lines, needs_addresses, node_lines, rank_function
from jobs.exports.note import Note, Outcome
from jobs.exports.preamble import preamble_lines
from jobs.exports.process_shape import MPI, PYTORCH, ProcessShape, process_shape
from jobs.exports.spec_comment import comment_lines
from trainhub_launch.frameworks.tensorflow.configuration import TensorflowConfiguration
from trainhub_launch.spec import RunSpec

FILE = "run.sbatch"
# One step of priority on a hub in the units of --nice.
NICE = 100
EXPERIMENT = "experiment "
_FIELDS_IN_FILE = (
    "experiment",
    "display_name",
    "resources.gpus_per_node",
    "resources.memory",
    "resources.cpus",
    "limits.timeout_s",
    "limits.grace_s",
    "limits.retries",
    "priority",
)


def render(spec: RunSpec) -> SpecExport:
    shape = process_shape(spec)
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in _options(spec, shape)),
        "#",
        *comment_lines(spec),
        "",
        "set -eu",
        'cd "$SLURM_SUBMIT_DIR"',
        *preamble_lines(spec, processes=shape.per_node),
        *_rendezvous(spec, shape),
        *_steps(spec, shape),
    ]
    return SpecExport(
        {FILE: "\n".join(lines) + "\n"}, (*_notes(spec, shape), *field_notes(spec, _FIELDS_IN_FILE))
    )


def tasks_per_node(shape: ProcessShape) -> int:
    return shape.per_node if shape.starter else 1


def _options(spec: RunSpec, shape: ProcessShape) -> Iterator[str]:
    resources, limits = spec.resources, spec.limits
    yield f"--job-name={plain_name(spec.display_name or spec.experiment)}"
    # Only letters, digits, spaces, dots, dashes and underscores: it needs no more than quotes.
    yield f'--comment="{EXPERIMENT}{spec.experiment}"'
    yield f"--nodes={shape.nodes}"
    yield f"--ntasks-per-node={tasks_per_node(shape)}"
    if resources.cpus:
        yield f"--cpus-per-task={_cpus_per_task(resources.cpus, shape)}"
    if resources.memory:
        yield f"--mem={mebibytes(resources.memory)}M"
    if resources.all_gpus:
        yield "--exclusive"
    elif resources.gpus_per_node:
        yield f"--gpus-per-node={resources.gpus_per_node}"
    if limits.timeout_s:
        yield f"--time={duration(limits.timeout_s)}"
        if limits.grace_s:
            yield f"--signal=TERM@{limits.grace_s}"
    yield "--requeue" if limits.retries else "--no-requeue"
    if spec.priority < 0:
        yield f"--nice={-spec.priority * NICE}"
    yield "--output=%x-%j.log"


def _cpus_per_task(cpus: float, shape: ProcessShape) -> int:
    return max(1, int(cpus) // tasks_per_node(shape))


def _rendezvous(spec: RunSpec, shape: ProcessShape) -> Iterator[str]:
    if spec.resources.cpus:
        # srun does not take it over from sbatch.
        yield 'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"'
    if shape.starter:
        yield 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
        # Jobs that share a node need different ports.
        yield "MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))"
        yield "export MASTER_ADDR MASTER_PORT"
    elif needs_addresses(shape):
        yield 'NODE_LIST=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr "\\n" " ")'
        yield "export NODE_LIST"


def _steps(spec: RunSpec, shape: ProcessShape) -> Iterator[str]:
    yield ""
    if shape.starter and not shape.is_launcher:
        yield from rank_function(spec, _rank_variables(shape))
        pmix = " --mpi=pmix" if shape.starter == MPI else ""
        yield f"srun{pmix} --kill-on-bad-exit=1 {RANK_FUNCTION}"
        return
    if shape.starter == PYTORCH:
        names = f'export NODE_RANK="$SLURM_NODEID" RANK="$SLURM_NODEID" WORLD_SIZE={shape.nodes}'
        yield from rank_function(spec, [names, *elastic_lines(spec)])
        yield f"srun --kill-on-bad-exit=1 {RANK_FUNCTION}"
        return
    lines = node_lines(spec, shape)
    if len(lines) == 1:
        yield f"srun {lines[0]}"
        return
    yield "start_node() {"
    yield '    export NODE_RANK="$SLURM_NODEID"'
    if needs_addresses(shape):
        yield '    read -r -a nodes <<< "$NODE_LIST"'
    yield from (f"    {line}" for line in lines)
    yield "}"
    # With parameter servers the chief ends first, and nothing else would end the others.
    wait = " --wait=10" if _has_servers(spec) else ""
    yield f'srun --kill-on-bad-exit=1{wait} bash -euc "$(declare -f start_node); start_node"'


def _rank_variables(shape: ProcessShape) -> list[str]:
    torch = [
        'export RANK="$SLURM_PROCID" WORLD_SIZE="$SLURM_NTASKS" LOCAL_RANK="$SLURM_LOCALID"',
    ]
    if shape.starter == PYTORCH:
        return [*torch, f'export NODE_RANK="$SLURM_NODEID" LOCAL_WORLD_SIZE={shape.per_node}']
    return [
        # Open MPI sets these only where its own mpirun starts the processes.
        'export OMPI_COMM_WORLD_RANK="$SLURM_PROCID" OMPI_COMM_WORLD_SIZE="$SLURM_NTASKS"',
        f'export OMPI_COMM_WORLD_LOCAL_RANK="$SLURM_LOCALID" OMPI_COMM_WORLD_LOCAL_SIZE={shape.per_node}',
        *(torch if shape.per_node > 1 else ()),
    ]


def _has_servers(spec: RunSpec) -> bool:
    return isinstance(spec.distribution, TensorflowConfiguration) and bool(
        spec.distribution.parameter_server_count
    )


def _notes(spec: RunSpec, shape: ProcessShape) -> Iterator[Note]:
    resources, limits = spec.resources, spec.limits
    name = plain_name(spec.display_name or spec.experiment)
    if name != spec.display_name and spec.display_name:
        yield change_note(
            "display_name", f"becomes {name!r}: names of jobs have letters, digits, '.', '_' and '-'"
        )
    if resources.all_gpus:
        yield change_note("resources.gpus_per_node", "all GPUs of each node become whole nodes: --exclusive")
    if resources.memory and resources.memory % 2**20:
        yield change_note("resources.memory", f"is rounded up to {mebibytes(resources.memory)} MiB")
    if resources.cpus and _cpus_per_task(resources.cpus, shape) * tasks_per_node(shape) != resources.cpus:
        yield change_note(
            "resources.cpus",
            f"{resources.cpus:g} cores of a node become {_cpus_per_task(resources.cpus, shape)} for each of "
            f"its {tasks_per_node(shape)} task(s): Slurm gives whole cores to each",
        )
    if not resources.cpus:
        yield change_note(
            "resources.cpus", "is not set, so Slurm gives one core to each task; add --cpus-per-task"
        )
    if limits.timeout_s and limits.grace_s:
        yield change_note("limits.grace_s", "Slurm sends SIGTERM so long before --time ends, not after it")
    if limits.retries:
        yield change_note(
            "limits.retries",
            f"{limits.retries} becomes --requeue: Slurm starts it again after a node has failed or the job "
            "was preempted, without counting, and not after it has failed by itself",
        )
    if spec.priority > 0:
        yield Note(
            "priority", Outcome.NONE, "only an operator of Slurm may raise a priority (--nice below 0)"
        )
    elif spec.priority:
        yield change_note("priority", f"{spec.priority} becomes --nice={-spec.priority * NICE}")
    if shape.starter == MPI:
        yield change_note(
            "distribution", "srun starts the processes through PMIx: Slurm and MPI must both have it"
        )
