"""What all planners share: the argv of a spec, log names, and which GPU is whose."""

from __future__ import annotations

from trainhub_launch.expand import literal
from trainhub_launch.placement import PlacedNode
from trainhub_launch.spec import RunSpec


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
