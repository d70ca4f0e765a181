"""What all planners share: what a spec demands of a node, its argv, log names, and which GPU is whose."""

from __future__ import annotations

from trainhub_launch.expand import literal
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import PlacedNode
from trainhub_launch.spec import RunSpec


def demand_of(spec: RunSpec, processes: int, *, cpu_processes: int = 0, mpi: bool = False) -> Demand:
    """What `spec` needs of each node.

    At most `processes` run there, of which `cpu_processes` get no GPU in any case.
    `mpi`: the node should have an mpirun of its own.
    """
    distribution, gpus = spec.distribution, spec.resources.gpus_per_node
    return Demand(
        nodes=spec.node_count,
        gpus=gpus,
        slots=cpu_processes if gpus else processes,
        mpi=mpi,
        nodes_field="distribution" if distribution is None else distribution.nodes_field,
    )


def argv(spec: RunSpec) -> tuple[str, ...]:
    """The unexpanded command of every process. A script's own name is never expanded."""
    return spec.command or ("python", literal(spec.script), *spec.arguments)


def log_name(suffix: object, processes: int) -> str:
    """`70_driver_log.txt` for one process, `70_driver_log_<suffix>.txt` for several."""
    return "70_driver_log.txt" if processes == 1 else f"70_driver_log_{suffix}.txt"


def own_gpus(node: PlacedNode, local_rank: int, processes: int) -> tuple[str, ...]:
    """The GPUs meant for one process: its own where there is one each, else all of the node's.

    Only bookkeeping. Each process still *sees* all GPUs of its node in the same order, as under
    torchrun and Azure ML, because scripts say `cuda:LOCAL_RANK`: were only its own visible, that
    would be an invalid device for every local rank but 0.
    """
    return (node.gpus[local_rank],) if len(node.gpus) == processes else node.gpus


def deal(items: int, places: int) -> list[int]:
    """`items` in blocks over `places`, as even as can be, the first places taking the rest."""
    share, rest = divmod(items, places)
    return [share + (place < rest) for place in range(places)]
