"""From slots to nodes: Determined counts the GPUs of a trial, and TrainHub those of each node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from trainhub_sdk.determined.config import ERROR, HINT, WARNING, ExperimentConfig

if TYPE_CHECKING:
    from trainhub_sdk.records.machines import Cluster, Node

SLOTS = "resources.slots_per_trial"
POOL = "resources.resource_pool"
# Of Determined's scheduler: 1 is served first, 99 last.
_USUAL_PRIORITY, _LAST_PRIORITY, _HIGHEST = 42, 99, 10


class Slots(NamedTuple):
    """`slots_per_node`: processes of a launcher on each node; `gpus_per_node`: 0 = they run on CPUs."""

    cluster: str
    node_count: int
    slots_per_node: int
    gpus_per_node: int

    @property
    def process_count(self) -> int:
        return self.node_count * self.slots_per_node


def choose_cluster(config: ExperimentConfig, chosen: str, clusters: Sequence[Cluster]) -> str:
    """Returns the name of the cluster, "" if the hub chooses. `chosen`: by the user, "" = as the resource
    pool is called."""
    pool = config.get(POOL)
    if chosen or not pool:
        return chosen
    same = next((row.name for row in clusters if row.name.lower() == str(pool).lower()), None)
    if same is None:
        names = ", ".join(row.name for row in clusters) or "none"
        text = f"there is no cluster {pool} (there are: {names}), so the hub chooses; cluster= names one."
        config.add(WARNING, POOL, text)
    return same or ""


def place_slots(
    config: ExperimentConfig, cluster: str, nodes: Sequence[Node], gpus_per_node: int | None
) -> Slots:
    """`gpus_per_node`: how many GPUs a node has, None = as the hub's nodes have them."""
    slots = config.integer(SLOTS, 1)
    if slots == 0:
        return Slots(cluster, 1, 1, 0)
    available = _largest(cluster, nodes) if gpus_per_node is None else gpus_per_node
    if available == 0:
        text = (
            f"there are no GPUs: {slots} process(es) on CPUs. Give gpus_per_node= if a node will have some."
        )
        config.add(WARNING, SLOTS, text)
        return Slots(cluster, 1, slots, 0)
    node_count = -(-slots // available)
    if node_count > 1 and config.get("resources.is_single_node"):
        text = f"no node has {slots} GPUs, the largest has {available}: lower {SLOTS}, or leave this out."
        config.add(ERROR, "resources.is_single_node", text)
    while slots % node_count:
        node_count += 1
    if node_count > 1:
        text = f"{slots} slots become {node_count} nodes with {slots // node_count} GPUs each."
        config.add(HINT, SLOTS, text)
    return Slots(cluster, node_count, slots // node_count, slots // node_count)


def read_priority(config: ExperimentConfig) -> int:
    """Returns the priority on the hub, -10 to 10, where the highest is served first."""
    theirs = config.integer("resources.priority", _USUAL_PRIORITY, least=1)
    span = _USUAL_PRIORITY - 1 if theirs < _USUAL_PRIORITY else _LAST_PRIORITY - _USUAL_PRIORITY
    ours = max(-_HIGHEST, round(_HIGHEST * (_USUAL_PRIORITY - theirs) / span))
    if theirs != _USUAL_PRIORITY:
        config.add(
            HINT, "resources.priority", f"{theirs} of 99, smallest first, becomes {ours} of -10 to 10."
        )
    return ours


def _largest(cluster: str, nodes: Sequence[Node]) -> int:
    rows = [node for node in nodes if node.status == "ready" and cluster in ("", node.cluster)]
    return max(map(_usable_gpus, rows), default=0)


def _usable_gpus(node: Node) -> int:
    """Returns how many GPUs of a node runs can get, apart from the parts of those that are split."""
    return sum(gpu.state == "ok" and not gpu.mig for gpu in node.gpus)
