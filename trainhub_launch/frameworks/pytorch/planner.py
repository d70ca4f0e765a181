"""Plans PyTorch runs: TrainHub starts every process, or one per node for the user's launcher."""

from __future__ import annotations

from trainhub_launch.distribution import narrow
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks.layout import argv, demand_of, log_name, own_gpus
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration, indivisible
from trainhub_launch.plan import EnvValue, LaunchPlan, NodeCommand, PlannedProcess
from trainhub_launch.processes import elastic, environment
from trainhub_launch.processes.environment import Ports
from trainhub_launch.processes.launchers import processes_started
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import RunSpec


def demand(spec: RunSpec) -> Demand:
    process_count = narrow(spec.distribution, PyTorchConfiguration).process_count
    # Rounded up: a count that does not divide is reported by the planner, not as a lack of slots.
    return demand_of(spec, -(-process_count // spec.node_count) if process_count else 1)


def plan(spec: RunSpec, placement: Placement, ports: Ports) -> LaunchPlan:
    process_count = narrow(spec.distribution, PyTorchConfiguration).process_count
    master, named_ports = environment.master(placement, ports)
    commands = []
    for node_rank, node in enumerate(placement.nodes):
        if process_count is None:
            processes: tuple[PlannedProcess, ...] = (_per_node(spec, placement, master, node_rank),)
        else:
            processes = _per_process(spec, placement, master, node_rank, process_count)
        commands.append(
            NodeCommand(node=node.name, node_rank=node_rank, address=node.address, processes=processes)
        )
    return LaunchPlan(
        framework="pytorch",
        commands=tuple(commands),
        ports=named_ports,
        notes=environment.network_notes(placement),
    )


def _per_process(
    spec: RunSpec, placement: Placement, master: dict[str, EnvValue], node_rank: int, world: int
) -> tuple[PlannedProcess, ...]:
    nodes = len(placement.nodes)
    if world % nodes:
        raise SpecError("distribution.process_count", indivisible(world, nodes))
    here = world // nodes
    node = placement.nodes[node_rank]
    return tuple(
        PlannedProcess(
            rank=(rank := node_rank * here + local_rank),
            local_rank=local_rank,
            node_rank=node_rank,
            role="worker",
            log_name=log_name(rank, world),
            argv=argv(spec),
            gpus=own_gpus(node, local_rank, here),
            env=environment.common(node, placement, processes=here, visible=node.gpus)
            | master
            | {
                "WORLD_SIZE": str(world),
                "NODE_RANK": str(node_rank),
                "RANK": str(rank),
                "LOCAL_RANK": str(local_rank),
                "LOCAL_WORLD_SIZE": str(here),
            },
        )
        for local_rank in range(here)
    )


def _per_node(
    spec: RunSpec, placement: Placement, master: dict[str, EnvValue], node_rank: int
) -> PlannedProcess:
    node: PlacedNode = placement.nodes[node_rank]
    nodes = len(placement.nodes)
    return PlannedProcess(
        rank=node_rank,
        local_rank=0,
        node_rank=node_rank,
        role="launcher",
        log_name=log_name(node_rank, nodes),
        argv=argv(spec),
        gpus=node.gpus,
        # No LOCAL_RANK or LOCAL_WORLD_SIZE: with them Lightning takes itself for a rank somebody else
        # started and waits for ever.
        env=environment.common(node, placement, processes=processes_started(spec), visible=node.gpus)
        | master
        | {
            "NODE_RANK": str(node_rank),
            # These count nodes, not processes: the launcher replaces them for each process that it starts.
            "WORLD_SIZE": str(nodes),
            "RANK": str(node_rank),
        }
        | elastic.variables(spec, placement, node_rank),
    )
