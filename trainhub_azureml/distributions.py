"""How the processes of a run are distributed. The attributes may be set after the constructor."""

from __future__ import annotations

from typing import Any

from trainhub_azureml.exceptions import UserErrorException
from trainhub_sdk.spec import Distribution, Mpi, PyTorch, TensorFlow


class MpiConfiguration:
    def __init__(self, process_count_per_node: int = 1, node_count: int = 1) -> None:
        self.process_count_per_node = process_count_per_node
        self.node_count = node_count


class PyTorchConfiguration:
    """`process_count`: on all nodes together; None = one on each node."""

    def __init__(
        self,
        communication_backend: str = "Nccl",
        process_count: int | None = None,
        node_count: int = 1,
    ) -> None:
        self.communication_backend = communication_backend
        self.process_count = process_count
        self.node_count = node_count


class TensorflowConfiguration:
    def __init__(self, worker_count: int = 1, parameter_server_count: int = 1) -> None:
        self.worker_count = worker_count
        self.parameter_server_count = parameter_server_count


class ParallelTaskConfiguration:
    """Refused when it is used: its tasks have no counterpart."""

    def __init__(self, **values: Any) -> None:
        raise UserErrorException("ParallelTaskConfiguration is not offered: submit a run for each task.")


class DistributionChoice:
    """The distribution of a spec, with the numbers that decide about GPUs."""

    def __init__(self, distribution: Distribution, nodes: int, processes: int) -> None:
        self.distribution = distribution
        self.node_count = nodes
        self.processes_per_node = processes


def distribution_of(config: Any) -> DistributionChoice | None:
    """Returns what a configuration means, None for no distribution. Raises UserErrorException."""
    if config is None:
        return None
    if isinstance(config, MpiConfiguration):
        per_node, nodes = _count(config, "process_count_per_node"), _count(config, "node_count")
        return DistributionChoice(Mpi(per_node, nodes), nodes, per_node)
    if isinstance(config, PyTorchConfiguration):
        nodes = _count(config, "node_count")
        total = None if config.process_count is None else _count(config, "process_count")
        if total is not None and total % nodes:
            raise UserErrorException(
                f"PyTorchConfiguration: process_count={total} cannot be divided by node_count={nodes}; "
                "it counts the processes on all nodes together."
            )
        backend = str(config.communication_backend or "nccl").lower()
        choice = PyTorch(total, nodes, backend)
        return DistributionChoice(choice, nodes, (total or nodes) // nodes)
    if isinstance(config, TensorflowConfiguration):
        workers, servers = _count(config, "worker_count"), _count(config, "parameter_server_count", least=0)
        return DistributionChoice(TensorFlow(workers, servers), workers + servers, 1)
    raise UserErrorException(
        f"distributed_job_config: {type(config).__name__} is none of MpiConfiguration, PyTorchConfiguration "
        "and TensorflowConfiguration."
    )


def _count(config: Any, name: str, least: int = 1) -> int:
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UserErrorException(
            f"{type(config).__name__}: {name}={value!r} must be a number from {least} on."
        )
    return value
