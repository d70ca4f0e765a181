"""MPI: one mpirun on the head starts a rank wrapper per rank; the whole line is ours."""

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
    """Valid for Open MPI 4 and 5. Slots are given with each host, so nothing is oversubscribed in its
    eyes; mapped by slot, node k holds the ranks that the plan says."""
    hosts = ",".join(f"{environment.address(node, placement)}:{per_node}" for node in placement.nodes)
    options = [
        "--host",
        hosts,
        "-np",
        str(per_node * len(placement.nodes)),
        "--map-by",
        "slot",
        "--bind-to",
        "none",
    ]
    # Cores are not leased: ranks that spin while they wait starve those they wait for (2,000 all-reduces
    # of 6 ranks on 2 cores: 45 s spinning, 0.2 s yielding).
    options += ["--mca", "mpi_yield_when_idle", "1"]
    if len(placement.nodes) > 1:
        options += [
            "--mca",
            "plm_rsh_agent",
            RSH_AGENT,
            "--mca",
            "plm_rsh_no_tree_spawn",
            "1",
            "--leave-session-attached",
        ]
    return ("mpirun", *options, RANK_WRAPPER)


def _interfaces(node: PlacedNode, placement: Placement) -> dict[str, EnvValue]:
    """For mpirun and its daemons, by the names of Open MPI 4 and 5. Not among mpirun's options: those are for
    all nodes, whose interfaces may differ, and Open MPI 4 ends where it is told of one that does not
    exist."""
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
    """What Azure ML gives to MPI jobs and DeepSpeed looks for. AZUREML_EXPERIMENT_ID makes DeepSpeed
    read all the others without asking, so they exist together."""
    where, port = master["MASTER_ADDR"], master["MASTER_PORT"]
    env: dict[str, EnvValue] = {
        "AZUREML_EXPERIMENT_ID": spec.experiment,
        "AZ_BATCHAI_MPI_MASTER_NODE": where,
        "AZ_BATCH_MASTER_NODE": f"{where}:{port}",
        "NCCL_SOCKET_IFNAME": "lo",
    }
    if len(placement.nodes) > 1:
        env["NCCL_SOCKET_IFNAME"] = node.interface or "^docker0,lo"
        if node.interface:
            env["OMPI_MCA_btl_tcp_if_include"] = node.interface
    return env


def _torch_names(rank: int, world: int, local_rank: int, per_node: int) -> dict[str, EnvValue]:
    """DeepSpeed with all of these takes our MASTER_PORT instead of its fixed 54965 or 29500, which two
    runs on one machine would share. With one process a node they are left out: that process may be a
    per-node launcher, and Lightning hangs when it finds LOCAL_RANK."""
    if per_node == 1:
        return {}
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(local_rank)}


def _set_by_open_mpi(rank: int, world: int, local_rank: int, per_node: int) -> dict[str, str]:
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(world),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(per_node),
        # Counts on its node and is not NODE_RANK, whatever its name says.
        "OMPI_COMM_WORLD_NODE_RANK": str(local_rank),
        "OMPI_UNIVERSE_SIZE": str(world),
        "PMIX_RANK": str(rank),
    }
