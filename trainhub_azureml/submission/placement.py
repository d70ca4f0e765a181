"""Which cluster a compute target means, and how many GPUs of a node a run gets there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from trainhub_azureml.local_files.mapping import NameMapping

if TYPE_CHECKING:
    from trainhub_sdk.records.machines import Cluster, Node

LOCAL = "local"
ALL_GPUS = "all"


class TargetChoice(NamedTuple):
    """`cluster`: "" = the hub chooses; `gpus_per_node`: of the mapping, a number or "all", None if it says
    nothing; `note`: what was guessed."""

    cluster: str
    gpus_per_node: int | str | None = None
    note: str = ""


def find_cluster(name: str, mapping: NameMapping, clusters: Sequence[Cluster]) -> TargetChoice | None:
    """Returns what a name means: by the mapping, the cluster of that name, or the only one; None if that is
    nothing."""
    entry = mapping.compute_for(name)
    if entry is not None:
        return TargetChoice(entry.cluster, entry.gpus_per_node)
    same = next((row.name for row in clusters if row.name.lower() == name.lower()), None)
    if same is not None:
        return TargetChoice(same)
    if len(clusters) == 1:
        only = clusters[0].name
        return TargetChoice(only, None, f"There is no cluster {name}: {only}, the only one, is used.")
    return None


def choose_target(name: str, mapping: NameMapping, clusters: Sequence[Cluster] | None) -> TargetChoice | None:
    """Returns the cluster of a run. `name`: "" or `local` = the user's machine; `clusters`: None if no hub
    can be asked. None if there is no such cluster."""
    if name in ("", LOCAL):
        entry = mapping.compute_for(LOCAL)
        if entry is not None:
            return TargetChoice(entry.cluster, entry.gpus_per_node)
        only = clusters[0].name if clusters and len(clusters) == 1 else ""
        where = f"the cluster {only}" if only else "a cluster that the hub chooses"
        note = f"No compute target is given; Azure would run it on this machine, and TrainHub uses {where}."
        return TargetChoice(only, None, note)
    if clusters is None:
        entry = mapping.compute_for(name)
        if entry is not None:
            return TargetChoice(entry.cluster, entry.gpus_per_node)
        return TargetChoice(name, None, f"No hub was asked whether it has a cluster {name}.")
    return find_cluster(name, mapping, clusters)


def gpus_per_node(
    target: TargetChoice, processes_per_node: int, node_count: int, nodes: Sequence[Node] | None
) -> tuple[int | str, str]:
    """Returns the number of GPUs on each node, or "all", and a note if it was guessed. A run of the SDK v1
    has whole nodes: all GPUs, unless several processes start on each."""
    if target.gpus_per_node is not None:
        return target.gpus_per_node, ""
    rows = [node for node in nodes or () if node.status == "ready" and target.cluster in ("", node.cluster)]
    if nodes is not None and not any(_gpus(node) for node in rows):
        return 0, ""
    if processes_per_node > 1:
        return processes_per_node, ""
    counts = Counter(_gpus(node) for node in rows if _all_work(node))
    now = max((gpus for gpus, number in counts.items() if number >= node_count), default=0)
    number = f", {now} at present," if now else ""
    return ALL_GPUS, f"The run gets whole nodes, all GPUs of each{number} as with Azure." if now != 1 else ""


def _gpus(node: Node) -> int:
    # A GPU that is split gives its parts instead.
    return sum(not gpu.mig for gpu in node.gpus)


def _all_work(node: Node) -> bool:
    return all(gpu.state == "ok" or gpu.mig for gpu in node.gpus)
