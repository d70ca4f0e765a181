"""Functions that all planners share: the demand of a spec, its argv, names of logs, and the GPUs of each
process."""

from __future__ import annotations

from trainhub_launch.expand import literal
from trainhub_launch.log_names import DRIVER_LOG
from trainhub_launch.scheduler.capacity import AllGpus, Demand
from trainhub_launch.scheduler.placement import PlacedNode
from trainhub_launch.spec import RunSpec


def demand_of(spec: RunSpec, processes: int, *, cpu_processes: int = 0, mpi: bool = False) -> Demand:
    """Returns what `spec` needs of each node.

    At most `processes` run there, of which `cpu_processes` never get a GPU. `mpi`: nodes with an mpirun of
    their own are preferred."""
    distribution, gpus = spec.distribution, spec.resources.gpus_per_node
    all_gpus = AllGpus(processes, cpu_processes) if spec.resources.all_gpus else None
    return Demand(
        nodes=spec.node_count,
        gpus=gpus,
        # A process with a GPU of its own takes no slot, so in a GPU run only processes without GPUs need
        # slots.
        slots=cpu_processes if gpus else processes,
        mpi=mpi,
        memory_bytes=spec.resources.memory or 0,
        cpus=spec.resources.cpus or 0.0,
        disk_bytes=spec.resources.disk or 0,
        has_secrets=any(item.secret is not None for item in spec.environment_variables.values()),
        nodes_field="distribution" if distribution is None else distribution.nodes_field,
        all_gpus=all_gpus,
    )


def argv(spec: RunSpec) -> tuple[str, ...]:
    """Returns the unexpanded command of every process. The name of a script is escaped, so that it is never
    expanded."""
    return spec.command or ("python", literal(spec.script), *spec.arguments)


def log_name(suffix: object, processes: int) -> str:
    """Returns `70_driver_log.txt` for a run of one process, and `70_driver_log_<suffix>.txt` for a run of
    several."""
    return f"{DRIVER_LOG}.txt" if processes == 1 else f"{DRIVER_LOG}_{suffix}.txt"


def own_gpus(node: PlacedNode, local_rank: int, processes: int) -> tuple[str, ...]:
    """Returns the GPUs meant for one process: its own if there is one for each process, otherwise all of the
    node.

    This is only a record. Each process still *sees* all GPUs of its node in the same order, as under torchrun
    and Azure ML, because scripts use `cuda:LOCAL_RANK`: if a process saw only its own GPU, that would be an
    invalid device for every local rank but 0."""
    return (node.gpus[local_rank],) if len(node.gpus) == processes else node.gpus


def deal(items: int, places: int) -> list[int]:
    """Returns how many of `items` each of `places` gets: as evenly as possible, the first places getting one
    more."""
    share, rest = divmod(items, places)
    return [share + (place < rest) for place in range(places)]
