"""Runs on several nodes, as one or two nodes see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.node.builders import order, process
from tests.node.hub import FakeHub, Key
from trainhub_launch.order import NodeOrder
from trainhub_launch.plan import RANK_WRAPPER, RSH_AGENT, PlannedProcess


def part(order_parts: NodeOrder, *, head: bool = True, rank: int = 0) -> NodeOrder:
    """`made` as one node's part of a run on several: without leave to start. `rank`: that of the node."""
    return replace(order_parts, go=False, head=head, command=replace(order_parts.command, node_rank=rank))


def final(order_parts: NodeOrder, **env: str) -> NodeOrder:
    """The order that follows, with what each process is told in addition."""
    processes = tuple(replace(one, env={**one.env, **env}) for one in order_parts.command.processes)
    return replace(order_parts, go=True, command=replace(order_parts.command, processes=processes))


def mpi_process(rank: int, local_rank: int, argv: Sequence[str], *, of: int) -> PlannedProcess:
    provided = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(of)}
    provided |= {"OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank)}
    return replace(process(rank, argv, of=of), local_rank=local_rank, provided=provided)


def mpi_parts(
    hubs: Sequence[FakeHub], addresses: Sequence[str], code: str, *, per_node: int = 2, grace_s: int = 5
) -> list[Key]:
    """One run under mpirun on as many nodes as there are hubs; given to all of them, without leave to
    start."""
    world = per_node * len(hubs)
    hosts = ",".join(f"{address}:{per_node}" for address in addresses)
    mpirun = (
        "mpirun",
        "--host",
        hosts,
        "-np",
        str(world),
        "--map-by",
        "slot",
        "--bind-to",
        "none",
        "--mca",
        "mpi_yield_when_idle",
        "1",
        "--mca",
        "plm_rsh_agent",
        RSH_AGENT,
        "--mca",
        "plm_rsh_no_tree_spawn",
        "1",
        "--leave-session-attached",
        RANK_WRAPPER,
    )
    keys, run = [], ""
    for node, hub in enumerate(hubs):
        ranks = range(node * per_node, (node + 1) * per_node)
        processes = [mpi_process(rank, rank - ranks[0], ("python", "train.py"), of=world) for rank in ranks]
        order_parts = order(
            hub, {"train.py": code}, *processes, run=run, launcher=() if node else mpirun, grace_s=grace_s
        )
        interface = {f"{package}_MCA_oob_tcp_if_include": f"eth{node}" for package in ("OMPI", "PRTE")}
        order_parts = replace(
            order_parts, command=replace(order_parts.command, address=addresses[node], launcher_env=interface)
        )
        run = order_parts.run
        keys.append(hub.give(part(order_parts, head=node == 0, rank=node)))
    return keys
