"""Lines of bash that start the processes of one node. The lines before them set NODE_RANK, MASTER_ADDR and
MASTER_PORT, and, if `needs_addresses`, `nodes`, the addresses of all nodes."""

from __future__ import annotations

from jobs.exports.export import command_line, program_line
from jobs.exports.planned_processes import planned_lines, planned_nodes
from jobs.exports.process_shape import MPI, PYTORCH, ProcessShape
from trainhub_launch.expand import references
from trainhub_launch.processes import elastic
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import RunSpec

# The port of a run's head, as on a hub.
MASTER_PORT = 6105
RANK_FUNCTION = 'bash -euc "$(declare -f start_rank); start_rank"'
_RANK_NAMES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"})


def needs_addresses(shape: ProcessShape) -> bool:
    """Returns whether nodes must know the addresses of all others, not only that of the first one."""
    return shape.nodes > 1 and shape.starter != PYTORCH


def lines_of_nodes(spec: RunSpec, shape: ProcessShape, prefix: str) -> list[list[str]]:
    """Returns the lines of each node. Raises SpecError for a spec that cannot be planned."""
    if shape.starter in (MPI, PYTORCH):
        return [node_lines(spec, shape, prefix)] * shape.nodes
    return planned_nodes(spec, prefix)


def node_lines(spec: RunSpec, shape: ProcessShape, prefix: str = "") -> list[str]:
    """Returns the lines for any node, which NODE_RANK names. `prefix`: stands before each command, such as
    `timeout 90s `. Raises SpecError for a spec that cannot be planned."""
    if shape.starter == MPI:
        return _mpirun(spec, shape, prefix)
    if shape.starter != PYTORCH:
        return planned_lines(spec, prefix)
    if shape.is_launcher:
        return [
            f'export RANK="$NODE_RANK" WORLD_SIZE={shape.nodes}',
            *elastic_lines(spec),
            f"{prefix}{command_line(spec)}",
        ]
    return _torchrun(spec, shape, prefix)


def elastic_lines(spec: RunSpec) -> list[str]:
    """Returns the variables that restarts of the user's own torchrun need."""
    nodes = tuple(PlacedNode("", "", (), 0, 1) for _ in range(spec.node_count))
    env = elastic.variables(spec, Placement(nodes), 0)
    # The address of a node is known to torchrun itself, but not whether it is the first one.
    values = {"PET_RDZV_CONF": "is_host=$((NODE_RANK == 0))", "PET_LOCAL_ADDR": ""}
    lines = {name: values.get(name, str(value)) for name, value in env.items()}
    return [f"export {name}={value}" for name, value in lines.items() if value]


def rank_function(spec: RunSpec, variables: list[str]) -> list[str]:
    return ["start_rank() {", *(f"    {line}" for line in variables), f"    exec {command_line(spec)}", "}"]


def _torchrun(spec: RunSpec, shape: ProcessShape, prefix: str) -> list[str]:
    nodes = f"--nnodes={shape.nodes} --nproc-per-node={shape.per_node}"
    where = '--node-rank="$NODE_RANK" --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT"'
    torchrun = f"{prefix}torchrun {nodes} {where}"
    names = {name for word in (*spec.command, *spec.arguments) for name in references(word)}
    if names & _RANK_NAMES:
        # torchrun starts programs without a shell, so each rank needs one that replaces its variables.
        return [*rank_function(spec, []), f"{torchrun} --no-python {RANK_FUNCTION}"]
    if spec.command:
        return [f"{torchrun} --no-python {program_line(spec)}"]
    return [f"{torchrun} {program_line(spec)}"]


def _mpirun(spec: RunSpec, shape: ProcessShape, prefix: str) -> list[str]:
    names = ["MASTER_ADDR", "MASTER_PORT", *spec.environment_variables]
    shared = " ".join(f"-x {name}" for name in names)
    options = f"-np {shape.world} --map-by slot --bind-to none --mca mpi_yield_when_idle 1"
    host = "--host localhost" if shape.nodes == 1 else '--host "$hosts"'
    slots = f":{shape.per_node}"
    mpirun = f"{prefix}mpirun {host}{slots if shape.nodes == 1 else ''} {options} {shared} {RANK_FUNCTION}"
    function = rank_function(spec, mpi_rank_lines(shape))
    if shape.nodes == 1:
        return [*function, mpirun]
    return [
        *function,
        f'hosts=$(printf "%s{slots}," "${{nodes[@]}}")',
        "# mpirun starts the processes of all nodes from the first one, through ssh.",
        'if [ "$NODE_RANK" = 0 ]; then',
        f"    {mpirun}",
        "fi",
    ]


def mpi_rank_lines(shape: ProcessShape) -> list[str]:
    # One process on a node may be a launcher, which needs these names for its own processes.
    if shape.per_node == 1:
        return []
    return [
        'export RANK="$OMPI_COMM_WORLD_RANK" WORLD_SIZE="$OMPI_COMM_WORLD_SIZE"',
        'export LOCAL_RANK="$OMPI_COMM_WORLD_LOCAL_RANK"',
    ]
