"""Plans MPI runs: one mpirun on the head node starts a rank wrapper for each rank. TrainHub writes its whole
command line."""

from __future__ import annotations

from trainhub_launch.distribution import narrow
from trainhub_launch.frameworks.layout import argv, demand_of, log_name, own_gpus
from trainhub_launch.frameworks.mpi.configuration import MpiConfiguration
from trainhub_launch.plan import RANK_WRAPPER, RSH_AGENT, EnvValue, LaunchPlan, NodeCommand, PlannedProcess
from trainhub_launch.processes import environment
from trainhub_launch.processes.environment import Ports
from trainhub_launch.processes.launchers import processes_started
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec import RunSpec


def demand(spec: RunSpec) -> Demand:
    return demand_of(spec, narrow(spec.distribution, MpiConfiguration).process_count_per_node, mpi=True)


def plan(spec: RunSpec, placement: Placement, ports: Ports) -> LaunchPlan:
    per_node = narrow(spec.distribution, MpiConfiguration).process_count_per_node
    master, named_ports = environment.master(placement, ports)
    commands = tuple(
        NodeCommand(
            node=node.name,
            node_rank=node_rank,
            address=node.address,
            processes=_processes(spec, placement, master, node_rank, per_node),
            launcher=_mpirun(placement, per_node) if node_rank == 0 else (),
            launcher_env=_interfaces(node, placement),
        )
        for node_rank, node in enumerate(placement.nodes)
    )
    return LaunchPlan(
        framework="mpi", commands=commands, ports=named_ports, notes=environment.network_notes(placement)
    )


def _mpirun(placement: Placement, per_node: int) -> tuple[str, ...]:
    """Returns the command line of mpirun, valid for Open MPI 4 and 5. Each host is given with its slots, so
    that Open MPI does not consider it oversubscribed; mapped by slot, each node gets the ranks of the
    plan."""
    hosts = ",".join(f"{environment.address(node, placement)}:{per_node}" for node in placement.nodes)
    # Without a number of slots for each host Open MPI counts one, and refuses to start more ranks there.
    options = [
        "--host",
        hosts,
        "-np",
        str(per_node * len(placement.nodes)),
        "--map-by",
        "slot",
        # Open MPI binds ranks to cores from the first one on, so two runs on one node would share the same
        # cores.
        "--bind-to",
        "none",
    ]
    # Cores are not leased: ranks that spin while they wait starve those they wait for (2,000 all-reduces
    # of 6 ranks on 2 cores: 45 s spinning, 0.2 s yielding).
    options += ["--mca", "mpi_yield_when_idle", "1"]
    if len(placement.nodes) > 1:
        options += [
            # The agent's requests reach the hub from the head only. Tree spawn would let daemons on other
            # nodes call it, too.
            "--mca",
            "plm_rsh_agent",
            RSH_AGENT,
            "--mca",
            "plm_rsh_no_tree_spawn",
            "1",
            # Keeps the daemons in the foreground: the node could not see the end of one that detaches itself.
            "--leave-session-attached",
        ]
    return ("mpirun", *options, RANK_WRAPPER)


def _interfaces(node: PlacedNode, placement: Placement) -> dict[str, EnvValue]:
    """Returns variables that name the node's interface to mpirun and its daemons, for Open MPI 4 and 5.
    Options of mpirun would apply to all nodes, whose interfaces may differ, and Open MPI 4 ends if an
    interface does not exist."""
    if len(placement.nodes) == 1 or not node.interface:
        return {}
    return {f"{package}_MCA_oob_tcp_if_include": node.interface for package in ("OMPI", "PRTE")}


def _processes(
    spec: RunSpec, placement: Placement, master: dict[str, EnvValue], node_rank: int, per_node: int
) -> tuple[PlannedProcess, ...]:
    node = placement.nodes[node_rank]
    world = per_node * len(placement.nodes)
    threads = per_node * processes_started(spec)
    return tuple(
        PlannedProcess(
            rank=(rank := node_rank * per_node + local_rank),
            local_rank=local_rank,
            node_rank=node_rank,
            role="worker",
            log_name=log_name(rank, world),
            argv=argv(spec),
            gpus=own_gpus(node, local_rank, per_node),
            env=environment.common(node, placement, processes=threads, visible=node.gpus)
            | master
            | _azure(spec, placement, node, master)
            | _torch_names(rank, world, local_rank, per_node),
            provided=_set_by_open_mpi(rank, world, local_rank, per_node),
        )
        for local_rank in range(per_node)
    )


def _azure(
    spec: RunSpec, placement: Placement, node: PlacedNode, master: dict[str, EnvValue]
) -> dict[str, EnvValue]:
    """Returns the variables that Azure ML gives to MPI jobs and DeepSpeed looks for. If AZUREML_EXPERIMENT_ID
    is set, DeepSpeed reads all the others without a check, so they are set together."""
    where, port = master["MASTER_ADDR"], master["MASTER_PORT"]
    env: dict[str, EnvValue] = {
        "AZUREML_EXPERIMENT_ID": spec.experiment,
        "AZ_BATCHAI_MPI_MASTER_NODE": where,
        "AZ_BATCH_MASTER_NODE": f"{where}:{port}",
        # On one node all ranks reach each other at the loopback, whatever the interfaces of the machine are.
        "NCCL_SOCKET_IFNAME": "lo",
    }
    if len(placement.nodes) > 1:
        # NCCL reads ^ as "any interface but these". Docker's bridge does not lead to other nodes.
        env["NCCL_SOCKET_IFNAME"] = node.interface or "^docker0,lo"
        if node.interface:
            env["OMPI_MCA_btl_tcp_if_include"] = node.interface
    return env


def _torch_names(rank: int, world: int, local_rank: int, per_node: int) -> dict[str, EnvValue]:
    """Returns the ranks under PyTorch's names. With all of them DeepSpeed uses MASTER_PORT instead of its
    fixed 54965 or 29500, which two runs on one machine would share. With one process per node they are left
    out: that process may be a launcher, and Lightning hangs if it finds LOCAL_RANK."""
    if per_node == 1:
        return {}
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(local_rank)}


def _set_by_open_mpi(rank: int, world: int, local_rank: int, per_node: int) -> dict[str, str]:
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(world),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(per_node),
        # In spite of its name this is the rank among the processes of a node, not NODE_RANK.
        "OMPI_COMM_WORLD_NODE_RANK": str(local_rank),
        "OMPI_UNIVERSE_SIZE": str(world),
        "PMIX_RANK": str(rank),
    }
