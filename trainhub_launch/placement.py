"""Which nodes and GPUs a run gets: a pure choice, or a refusal with the sentence the user reads."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainhub_launch.spec import MpiConfiguration, PyTorchConfiguration, RunSpec, TensorflowConfiguration


@dataclass(frozen=True)
class FreeNode:
    """What one node offers now. `gpus`/`slots` are free ones, `*_total` all it has.

    A slot is the place of one process without a GPU. `cores` are CPU cores, for OMP_NUM_THREADS.
    `mpi`: the node itself has mpirun (an environment may bring its own).
    """

    name: str
    address: str
    gpus: tuple[str, ...]
    gpus_total: int
    slots: int
    slots_total: int
    cores: int
    interface: str = ""
    infiniband: bool = False
    mpi: bool = True


@dataclass(frozen=True)
class PlacedNode:
    """A node of a placement with the GPUs (UUIDs) and slots it gives."""

    name: str
    address: str
    gpus: tuple[str, ...]
    slots: int
    cores: int
    interface: str = ""
    infiniband: bool = False


@dataclass(frozen=True)
class Placement:
    """Nodes in node-rank order; the first is the head."""

    nodes: tuple[PlacedNode, ...]

    @property
    def head(self) -> PlacedNode:
        return self.nodes[0]


@dataclass(frozen=True)
class Refusal:
    """`permanent`: no freeing of GPUs on the present nodes can ever satisfy this."""

    sentence: str
    field: str
    permanent: bool


@dataclass(frozen=True)
class Demand:
    """What a spec asks of each of its nodes. `slots` counts the processes that get no GPU.

    `nodes_field` is where the spec says how many nodes, for a refusal that is about their number.
    """

    nodes: int
    gpus: int
    slots: int
    nodes_field: str = "distribution.node_count"


def demand(spec: RunSpec) -> Demand:
    """Nodes, GPUs per node and process slots per node that `spec` needs."""
    distribution, nodes = spec.distribution, spec.node_count
    gpus, processes, always_on_cpu = spec.resources.gpus_per_node, 1, 0
    nodes_field = "distribution.node_count"
    if isinstance(distribution, PyTorchConfiguration) and distribution.process_count:
        processes = -(-distribution.process_count // nodes)
    elif isinstance(distribution, MpiConfiguration):
        processes = distribution.process_count_per_node
    elif isinstance(distribution, TensorflowConfiguration):
        # The head also carries the parameter servers dealt to it and the chief.
        servers = distribution.parameter_server_count
        always_on_cpu = -(-servers // nodes) + (1 if servers else 0)
        processes = -(-distribution.worker_count // nodes) + always_on_cpu
        nodes_field = "resources.node_count"
    return Demand(nodes=nodes, gpus=gpus, slots=always_on_cpu if gpus else processes, nodes_field=nodes_field)


def place(wanted: Demand, nodes: tuple[FreeNode, ...]) -> Placement | Refusal:
    """Choose nodes for `wanted`, in the order of their names.

    The fullest fitting nodes are taken, so that large free ones stay whole. Several nodes are all
    with InfiniBand where enough of those are free; a run on one node leaves them to others.
    """
    if not nodes:
        return Refusal("The cluster has no node that is ready.", "resources.cluster", permanent=False)
    able = [node for node in nodes if node.gpus_total >= wanted.gpus and node.slots_total >= wanted.slots]
    if len(able) < wanted.nodes:
        return _never(wanted, nodes, able)
    fitting = [node for node in able if len(node.gpus) >= wanted.gpus and node.slots >= wanted.slots]
    if len(fitting) < wanted.nodes:
        return Refusal(_not_now(wanted, able), _field(wanted), permanent=False)
    connected = [node for node in fitting if node.infiniband]
    if 1 < wanted.nodes <= len(connected):
        fitting = connected
    fitting.sort(key=lambda node: (len(node.gpus), node.infiniband, node.slots, _natural(node.name)))
    chosen = sorted(fitting[: wanted.nodes], key=lambda node: _natural(node.name))
    return Placement(tuple(_placed(node, wanted) for node in chosen))


def provisional(wanted: Demand, nodes: tuple[FreeNode, ...]) -> Placement | Refusal:
    """A placement for a preview: as if everything on the nodes were free."""
    idle = tuple(
        FreeNode(
            name=node.name, address=node.address, slots=node.slots_total, slots_total=node.slots_total, cores=node.cores,
            gpus=tuple(f"<GPU {index} of {node.name}>" for index in range(node.gpus_total)),
            gpus_total=node.gpus_total, interface=node.interface, infiniband=node.infiniband, mpi=node.mpi,
        )
        for node in nodes
    )
    return place(wanted, idle)


def _placed(node: FreeNode, wanted: Demand) -> PlacedNode:
    return PlacedNode(
        name=node.name, address=node.address, gpus=node.gpus[: wanted.gpus], slots=wanted.slots, cores=node.cores,
        interface=node.interface, infiniband=node.infiniband,
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """gpu-2 before gpu-10."""
    return [(int(part) if part.isdecimal() else 0, part) for part in re.split(r"([0-9]+)", name)]


def _field(wanted: Demand) -> str:
    return "resources.gpus_per_node" if wanted.gpus else "distribution"


def _never(wanted: Demand, nodes: tuple[FreeNode, ...], able: list[FreeNode]) -> Refusal:
    if able:
        names = ", ".join(sorted((node.name for node in able), key=_natural)[:6])
        have = "1 node has" if len(able) == 1 else f"{len(able)} nodes have"
        sentence = f"The run needs {_each(wanted)}, and only {have} that many: {names}."
        return Refusal(sentence, wanted.nodes_field, permanent=True)
    nearest = max(
        nodes, key=lambda node: (min(node.gpus_total, wanted.gpus), min(node.slots_total, wanted.slots), node.gpus_total)
    )
    has = _amount(nearest.gpus_total if wanted.gpus else 0, nearest.slots_total if wanted.slots else 0)
    sentence = f"The run needs {_each(wanted)}, and no node has that many; {nearest.name} comes nearest with {has}."
    return Refusal(sentence, _field(wanted), permanent=True)


def _not_now(wanted: Demand, able: list[FreeNode]) -> str:
    nearest_first = sorted(able, key=lambda node: (-len(node.gpus) if wanted.gpus else -node.slots, _natural(node.name)))
    free = ", ".join(
        f"{node.name} has {len(node.gpus)} of {node.gpus_total} GPU(s) free"
        if len(node.gpus) < wanted.gpus
        else f"{node.name} has {node.slots} of {node.slots_total} process slot(s) free"
        if node.slots < wanted.slots
        else f"{node.name} is free"
        for node in nearest_first[:4]
    )
    return f"Waiting for {_each(wanted)}: {free}."


def _each(wanted: Demand) -> str:
    nodes = "1 node" if wanted.nodes == 1 else f"{wanted.nodes} nodes"
    return f"{nodes} with {_amount(wanted.gpus, wanted.slots)}{'' if wanted.nodes == 1 else ' each'}"


def _amount(gpus: int, slots: int) -> str:
    return " and ".join(
        [f"{gpus} GPU(s)"] * (gpus > 0) + [f"{slots} process slot(s)"] * (slots > 0)
    ) or "no GPU"
