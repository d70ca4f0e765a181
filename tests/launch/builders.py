"""Small ways to say what a test is about."""

from __future__ import annotations

from typing import Any

from trainhub_launch.distribution import Distribution
from trainhub_launch.frameworks.mpi.configuration import MpiConfiguration
from trainhub_launch.frameworks.pytorch.configuration import PyTorchConfiguration
from trainhub_launch.frameworks.tensorflow.configuration import TensorflowConfiguration
from trainhub_launch.plan import LaunchPlan, PlannedProcess
from trainhub_launch.planner import NO_PORTS, plan
from trainhub_launch.scheduler.placement import FreeNode, PlacedNode, Placement
from trainhub_launch.spec import RunSpec, SnapshotSource

SOURCE = SnapshotSource(id="5f" * 32)

ALWAYS = {
    "TRAINHUB_RUN_ID",
    "TRAINHUB_ATTEMPT",
    "TRAINHUB_URL",
    "TRAINHUB_TOKEN",
    "TRAINHUB_CHECKPOINT_DIR",
    "PYTHONUNBUFFERED",
    "PYTHONPATH",
    "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "MLFLOW_TRACKING_URI",
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_RUN_ID",
    "MLFLOW_EXPERIMENT_NAME",
    "MLFLOW_DISABLE_TELEMETRY",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT",
}
CPU = {"ACCELERATE_USE_CPU"}
SEVERAL_NODES = {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE"}


def make_spec(distribution: Distribution | None = None, **fields: Any) -> RunSpec:
    if "command" not in fields:
        fields.setdefault("script", "train.py")
    return RunSpec(source=SOURCE, distribution=distribution, **fields)


def pytorch(processes: int | None = None, nodes: int = 1, backend: str = "nccl") -> PyTorchConfiguration:
    return PyTorchConfiguration(communication_backend=backend, process_count=processes, node_count=nodes)


def mpi(per_node: int = 1, nodes: int = 1) -> MpiConfiguration:
    return MpiConfiguration(process_count_per_node=per_node, node_count=nodes)


def tensorflow(workers: int = 1, servers: int = 0) -> TensorflowConfiguration:
    return TensorflowConfiguration(worker_count=workers, parameter_server_count=servers)


def make_placement(nodes: int = 1, gpus: int = 0, *, cores: int = 16, infiniband: bool = False) -> Placement:
    """gpu-1 at 10.0.0.1 with GPU-1a, GPU-1b …; gpu-2 at 10.0.0.2 …"""
    return Placement(
        tuple(
            PlacedNode(
                name=f"gpu-{node}",
                address=f"10.0.0.{node}",
                gpus=tuple(f"GPU-{node}{letter}" for letter in "abcdefgh"[:gpus]),
                slots=0 if gpus else 8,
                cores=cores,
                interface="eth0",
                infiniband=infiniband,
            )
            for node in range(1, nodes + 1)
        )
    )


def make_node(
    name: str = "gpu-1",
    *,
    gpus: int = 0,
    free: int | None = None,
    slots: int = 8,
    free_slots: int | None = None,
    infiniband: bool = False,
    mpi: bool = True,
    address: str = "10.0.0.1",
    **more: Any,
) -> FreeNode:
    return FreeNode(
        name=name,
        address=address,
        gpus=tuple(f"{name}/{i}" for i in range(gpus if free is None else free)),
        gpus_total=gpus,
        slots=slots if free_slots is None else free_slots,
        slots_total=slots,
        cores=16,
        infiniband=infiniband,
        mpi=mpi,
        **{"hostname": name, "interface": "eth0", "keeps_secrets": True, **more},
    )


def all_ports(placement: Placement) -> dict[str, list[int]]:
    return {node.name: list(range(6105, 6169)) for node in placement.nodes}


def make_plan(spec: RunSpec, placement: Placement, *, preview: bool = False) -> LaunchPlan:
    return plan(spec, placement, NO_PORTS if preview else all_ports(placement))


def environment(process: PlannedProcess) -> dict[str, str]:
    return {name: str(value) for name, value in process.env.items()}
