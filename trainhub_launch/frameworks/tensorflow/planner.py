"""Plans TensorFlow runs: every task gets its own TF_CONFIG with the addresses of all tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass

from trainhub_launch.distribution import narrow
from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks.layout import argv, deal, demand_of, log_name
from trainhub_launch.frameworks.tensorflow.configuration import TensorflowConfiguration
from trainhub_launch.plan import LaunchPlan, NodeCommand, PlannedProcess, Reference
from trainhub_launch.processes import environment
from trainhub_launch.processes.environment import Ports
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec

INTER_OP_THREADS = "TF_NUM_INTEROP_THREADS"


@dataclass(frozen=True)
class _Task:
    role: str
    index: int
    node_rank: int
    rank: int
    local_rank: int
    gpus: tuple[str, ...]
    endpoint: str
    port: int | None

    @property
    def name(self) -> str:
        return self.role if self.role == "chief" else f"{self.role}_{self.index}"


def demand(spec: RunSpec) -> Demand:
    configuration, nodes = narrow(spec.distribution, TensorflowConfiguration), spec.node_count
    servers = configuration.parameter_server_count
    # The head also runs the chief and its share of the parameter servers, none of which gets a GPU.
    on_cpu = -(-servers // nodes) + (1 if servers else 0)
    return demand_of(spec, -(-configuration.worker_count // nodes) + on_cpu, cpu_processes=on_cpu)


def plan(spec: RunSpec, placement: Placement, ports: Ports) -> LaunchPlan:
    tasks = _tasks(narrow(spec.distribution, TensorflowConfiguration), placement, ports)
    cluster = {
        role: [task.endpoint for task in tasks if task.role == role]
        for role in ("chief", "worker", "ps")
        # An empty "ps" makes TensorFlow 2.21 crash with SIGSEGV.
        if any(task.role == role for task in tasks)
    }
    commands = tuple(
        NodeCommand(
            node=node.name,
            node_rank=node_rank,
            address=node.address,
            processes=tuple(
                _process(spec, placement, task, tasks, cluster)
                for task in tasks
                if task.node_rank == node_rank
            ),
        )
        for node_rank, node in enumerate(placement.nodes)
    )
    return LaunchPlan(
        framework="tensorflow",
        commands=commands,
        ports={task.name: task.port for task in tasks if task.port is not None},
        notes=environment.network_notes(placement),
    )


def _process(
    spec: RunSpec, placement: Placement, task: _Task, tasks: tuple[_Task, ...], cluster: dict[str, list[str]]
) -> PlannedProcess:
    here = sum(other.node_rank == task.node_rank for other in tasks)
    # The same three keys as in Azure ML's guide to TF_CONFIG.
    config = {"cluster": cluster, "task": {"type": task.role, "index": task.index}, "environment": "cloud"}
    node = placement.nodes[task.node_rank]
    env = environment.common(node, placement, processes=here, visible=task.gpus)
    if "ps" in cluster:
        # TensorFlow would start a thread per core. If those are fewer than the tasks that may wait for each
        # other, all wait for ever: https://www.tensorflow.org/tutorials/distribute/parameter_server_training
        env[INTER_OP_THREADS] = str(max(node.cores, len(cluster["worker"]) + 1))
    return PlannedProcess(
        rank=task.rank,
        local_rank=task.local_rank,
        node_rank=task.node_rank,
        role=task.role,
        log_name=log_name(task.name, len(tasks)),
        argv=argv(spec),
        gpus=task.gpus,
        env=env | {"TF_CONFIG": json.dumps(config)},
        # With parameter servers only the chief ends by itself; workers and servers run until they are
        # stopped.
        decides="chief" not in cluster or task.role == "chief",
    )


def _tasks(distribution: TensorflowConfiguration, placement: Placement, ports: Ports) -> tuple[_Task, ...]:
    nodes = len(placement.nodes)
    servers = distribution.parameter_server_count
    if nodes > distribution.worker_count:
        raise SpecError(
            "resources.node_count",
            f"{nodes} nodes for {distribution.worker_count} worker(s) leaves nodes without one; "
            "ask for at most as many nodes as workers",
        )
    workers_on = deal(distribution.worker_count, nodes)
    # The chief comes first, so that it has rank 0 and runs on the head.
    seats = [("chief", 0, 0)] if servers else []
    seats += [
        ("worker", sum(workers_on[:node]) + i, node) for node in range(nodes) for i in range(workers_on[node])
    ]
    # Servers are dealt round robin, whereas workers are placed in blocks.
    seats += [("ps", index, index % nodes) for index in range(servers)]
    doors = _PortPool(placement, ports)
    tasks = []
    slots_used = [0] * nodes
    for rank, (role, index, node_rank) in enumerate(seats):
        local_rank, slots_used[node_rank] = slots_used[node_rank], slots_used[node_rank] + 1
        # A TensorFlow process occupies all GPUs that it sees, so the workers of one node share them out.
        gpus = (
            _share(placement, node_rank, index - sum(workers_on[:node_rank]), workers_on)
            if role == "worker"
            else ()
        )
        port = doors.next(node_rank)
        host = environment.address(placement.nodes[node_rank], placement)
        # A preview has no ports. The text of the reference takes their place, so that it shows a complete
        # TF_CONFIG.
        endpoint = f"{host}:{Reference('launch', 'port') if port is None else port}"
        tasks.append(_Task(role, index, node_rank, rank, local_rank, gpus, endpoint, port))
    return tuple(tasks)


class _PortPool:
    """Assigns the free ports of the nodes to tasks. Agents that share a machine have one address and report
    the same free ports, so each port is assigned once per address, not once per node."""

    def __init__(self, placement: Placement, ports: Ports) -> None:
        self._placement, self._ports = placement, ports
        self._used: dict[str, set[int]] = {}

    def next(self, node_rank: int) -> int | None:
        if not self._ports:
            return None
        node = self._placement.nodes[node_rank]
        used = self._used.setdefault(environment.address(node, self._placement), set())
        port = next((port for port in self._ports.get(node.name, ()) if port not in used), None)
        if port is None:
            free = len(self._ports.get(node.name, ()))
            raise SpecError(
                "distribution",
                f"the {free} port(s) free on {node.name} are too few for its share of the tasks",
            )
        used.add(port)
        return port


def _share(placement: Placement, node_rank: int, seat: int, workers_on: list[int]) -> tuple[str, ...]:
    gpus, workers = placement.nodes[node_rank].gpus, workers_on[node_rank]
    # Too few GPUs for a share each: all workers of the node see all of them, and the findings warn about it.
    if len(gpus) < workers:
        return gpus
    shares = deal(len(gpus), workers)
    start = sum(shares[:seat])
    return gpus[start : start + shares[seat]]
