"""Which nodes and GPUs a run gets: a pure choice, or a refusal with the sentence the user reads."""

from __future__ import annotations

from dataclasses import dataclass

from trainhub_launch.spec import MpiConfiguration, PyTorchConfiguration, RunSpec, TensorflowConfiguration


@dataclass(frozen=True)
class FreeNode:
    """What one node offers now. `gpus`/`slots` are free ones, `*_total` all it has.

    A slot is the place of one process without a GPU. `cores` are CPU cores, for OMP_NUM_THREADS.
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
    """What a spec asks of each of its nodes; `slots` counts processes, and only matters without GPUs."""

    nodes: int
    gpus: int
    slots: int


def demand(spec: RunSpec) -> Demand:
    """Nodes, GPUs per node and (without GPUs) process slots per node that `spec` needs."""
    distribution, nodes = spec.distribution, spec.node_count
    processes = 1
    if isinstance(distribution, PyTorchConfiguration) and distribution.process_count:
        processes = -(-distribution.process_count // nodes)
    elif isinstance(distribution, MpiConfiguration):
        processes = distribution.process_count_per_node
    elif isinstance(distribution, TensorflowConfiguration):
        # The head also carries the parameter servers dealt to it and the chief.
        servers = distribution.parameter_server_count
        processes = -(-distribution.worker_count // nodes) + -(-servers // nodes) + (1 if servers else 0)
    gpus = spec.resources.gpus_per_node
    return Demand(nodes=nodes, gpus=gpus, slots=0 if gpus else processes)


def place(wanted: Demand, nodes: tuple[FreeNode, ...]) -> Placement | Refusal:
    """Choose nodes for `wanted`: fullest fitting node first, so that large free nodes stay whole."""
    if not nodes:
        return Refusal("The cluster has no node that is ready.", "resources.cluster", permanent=False)
    able = [node for node in nodes if node.gpus_total >= wanted.gpus and node.slots_total >= wanted.slots]
    if len(able) < wanted.nodes:
        return Refusal(_never(wanted, nodes, able), _field(wanted), permanent=True)
    fitting = [node for node in able if len(node.gpus) >= wanted.gpus and node.slots >= wanted.slots]
    if len(fitting) < wanted.nodes:
        return Refusal(_not_now(wanted, able), _field(wanted), permanent=False)
    fitting.sort(key=lambda node: (len(node.gpus), node.slots, node.name))
    return Placement(tuple(_placed(node, wanted) for node in fitting[: wanted.nodes]))


def provisional(wanted: Demand, nodes: tuple[FreeNode, ...]) -> Placement | Refusal:
    """A placement for a preview: as if everything on the nodes were free."""
    idle = tuple(
        FreeNode(
            name=node.name, address=node.address, slots=node.slots_total, slots_total=node.slots_total, cores=node.cores,
            gpus=tuple(f"<GPU {index} of {node.name}>" for index in range(node.gpus_total)),
            gpus_total=node.gpus_total, interface=node.interface, infiniband=node.infiniband,
        )
        for node in nodes
    )
    return place(wanted, idle)


def _placed(node: FreeNode, wanted: Demand) -> PlacedNode:
    return PlacedNode(
        name=node.name, address=node.address, gpus=node.gpus[: wanted.gpus], slots=wanted.slots, cores=node.cores,
        interface=node.interface, infiniband=node.infiniband,
    )


def _field(wanted: Demand) -> str:
    return "resources.gpus_per_node" if wanted.gpus else "distribution"


def _each(wanted: Demand) -> str:
    nodes = "1 node" if wanted.nodes == 1 else f"{wanted.nodes} nodes"
    what = f"{wanted.gpus} GPU(s)" if wanted.gpus else f"{wanted.slots} process slot(s)"
    return f"{nodes} with {what}"


def _never(wanted: Demand, nodes: tuple[FreeNode, ...], able: list[FreeNode]) -> str:
    if able:
        return f"The run needs {_each(wanted)}, and only {len(able)} node(s) have that many: {_names(able)}."
    nearest = max(nodes, key=lambda node: (node.gpus_total, node.slots_total) if wanted.gpus else (node.slots_total, 0))
    has = f"{nearest.gpus_total} GPU(s)" if wanted.gpus else f"{nearest.slots_total} process slot(s)"
    return f"The run needs {_each(wanted)}, and no node has that many; {nearest.name} comes nearest with {has}."


def _not_now(wanted: Demand, able: list[FreeNode]) -> str:
    free = ", ".join(
        f"{node.name} has {len(node.gpus)} of {node.gpus_total} GPU(s) free" if wanted.gpus
        else f"{node.name} has {node.slots} of {node.slots_total} slot(s) free"
        for node in able[:4]
    )
    return f"Waiting for {_each(wanted)}: {free}."


def _names(nodes: list[FreeNode]) -> str:
    return ", ".join(sorted(node.name for node in nodes)[:6])
