"""What a ring demands of its nodes, where its members run, and which variables they get. Pure."""

from __future__ import annotations

from tests.frameworks.ring.configuration import RingConfiguration
from trainhub_launch.distribution import narrow
from trainhub_launch.frameworks.layout import argv, deal, demand_of, log_name, own_gpus
from trainhub_launch.plan import EnvValue, LaunchPlan, NodeCommand, PlannedProcess
from trainhub_launch.processes import environment
from trainhub_launch.processes.environment import Ports
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec


def demand(spec: RunSpec) -> Demand:
    configuration = narrow(spec.distribution, RingConfiguration)
    return demand_of(spec, max(deal(configuration.member_count, configuration.node_count)))


def plan(spec: RunSpec, placement: Placement, ports: Ports) -> LaunchPlan:
    master, named_ports = environment.master(placement, ports)
    commands = tuple(
        NodeCommand(
            node=node.name,
            node_rank=node_rank,
            address=node.address,
            processes=_members(spec, placement, master, node_rank),
        )
        for node_rank, node in enumerate(placement.nodes)
    )
    return LaunchPlan(
        framework="ring", commands=commands, ports=named_ports, notes=environment.network_notes(placement)
    )


def _members(
    spec: RunSpec, placement: Placement, master: dict[str, EnvValue], node_rank: int
) -> tuple[PlannedProcess, ...]:
    configuration = narrow(spec.distribution, RingConfiguration)
    node, size = placement.nodes[node_rank], configuration.member_count
    members = deal(size, len(placement.nodes))
    here, first = members[node_rank], sum(members[:node_rank])
    step = 1 if configuration.direction == "forward" else -1
    shared = (
        environment.common(node, placement, processes=here, visible=node.gpus)
        | master
        | {"RING_SIZE": str(size)}
    )
    return tuple(
        PlannedProcess(
            rank=(rank := first + local_rank),
            local_rank=local_rank,
            node_rank=node_rank,
            role="member",
            log_name=log_name(rank, size),
            argv=argv(spec),
            gpus=own_gpus(node, local_rank, here),
            env=shared | {"RING_RANK": str(rank), "RING_NEXT": str((rank + step) % size)},
        )
        for local_rank in range(here)
    )
