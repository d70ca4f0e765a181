"""Runs that take all GPUs of each of their nodes: how many that is, and the refusal if no nodes fit.

All nodes of such a run have the same number of GPUs, whatever starts there: ranks are equal, and a plan made
for one node holds for each. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from trainhub_launch.scheduler.capacity import AllGpus, Demand, FreeNode, counted, words

# Numbers of GPUs that a refusal lists.
MAX_SIZES = 6


def with_all_gpus(demand: Demand, nodes: Sequence[FreeNode]) -> Demand:
    """Returns the demand with the number of GPUs that each of its nodes has; 0 if none of `nodes` has GPUs.

    Of the numbers that enough nodes have, those come first that give every process of a node a GPU, then
    those of nodes that are open and whose GPUs all work, then the largest. A demand for a certain number of
    GPUs is returned as it is."""
    whole = demand.all_gpus
    if whole is None:
        return demand
    sizes = {node.gpus_total for node in nodes} - {0}
    best = max(sizes, key=lambda size: _rank(_of_size(demand, whole, size), whole, nodes), default=0)
    return _of_size(demand, whole, best)


def too_few_equal_nodes(demand: Demand, nodes: Sequence[FreeNode]) -> str:
    """Returns the sentence for a run whose nodes do not exist, with the numbers of GPUs that there are."""
    sizes = Counter(node.gpus_total for node in nodes)
    largest = sorted(sizes, reverse=True)
    there = [f"{counted(sizes[size], 'node')} with {counted(size, 'GPU')}" for size in largest[:MAX_SIZES]]
    there += ["others"] * (len(largest) > MAX_SIZES)
    most = max((count for size, count in sizes.items() if size), default=0)
    fewer = f"ask for at most {counted(most, 'node')}, or " if 0 < most < demand.nodes else ""
    return (
        f"The run needs all GPUs of {counted(demand.nodes, 'node')} with equally many, and the cluster has "
        f"{words(there) or 'no node'}; {fewer}give a number of GPUs per node."
    )


def _of_size(demand: Demand, whole: AllGpus, gpus: int) -> Demand:
    return replace(demand, gpus=gpus, slots=whole.slots(gpus))


def _rank(choice: Demand, whole: AllGpus, nodes: Sequence[FreeNode]) -> tuple[bool, bool, bool, bool, int]:
    by_gpus_alone = Demand(choice.nodes, choice.gpus, 0, all_gpus=whole)
    return (
        sum(node.can_ever(choice) for node in nodes) >= choice.nodes,
        # Of sizes that are impossible for another reason, such as memory, the refusal gives that reason.
        sum(node.can_ever(by_gpus_alone) for node in nodes) >= choice.nodes,
        choice.gpus >= whole.gpu_processes,
        sum(node.could_soon(choice) for node in nodes) >= choice.nodes,
        choice.gpus,
    )
