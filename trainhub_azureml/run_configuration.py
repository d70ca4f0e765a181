"""Configurations of runs. What counts is read when the run is submitted, so all of it may be changed until
then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trainhub_azureml.distributions import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from trainhub_azureml.environment import Environment
from trainhub_azureml.exceptions import UserErrorException


class _Settings:
    """Settings without a meaning on a hub, which scripts may read and set."""

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)


class DockerConfiguration(_Settings):
    def __init__(
        self,
        use_docker: bool | None = True,
        shared_volumes: bool = True,
        arguments: Iterable[str] = (),
        shm_size: str | None = None,
    ) -> None:
        super().__init__(
            use_docker=use_docker, shared_volumes=shared_volumes, arguments=list(arguments), shm_size=shm_size
        )


class RunConfiguration:
    """`target`: a compute target, its name, or `local`; `environment`: an Environment; `communicator` with
    `mpi`, `node_count` and others: the older way to configure a distribution."""

    def __init__(
        self,
        script: str | None = None,
        arguments: Iterable[Any] | None = None,
        framework: str | None = None,
        communicator: str | None = None,
        conda_dependencies: Any = None,
        command: Any = None,
        **_others: Any,
    ) -> None:
        self.script = script
        self.arguments: list[Any] = list(arguments or ())
        self.command = command
        self.target: Any = "local"
        self.framework = framework or "Python"
        self.communicator = communicator or "None"
        self.node_count = 1
        self.max_run_duration_seconds: int | None = None
        self.environment: Any = Environment()
        if conda_dependencies is not None:
            self.environment.python.conda_dependencies = conda_dependencies
        self.environment_variables: dict[str, Any] = {}
        self.mpi = MpiConfiguration()
        self.pytorch = PyTorchConfiguration()
        self.tensorflow = TensorflowConfiguration()
        self.docker: Any = None
        self.data: dict[str, Any] = {}
        self.data_references: dict[str, Any] = {}
        self.output_data: dict[str, Any] = {}
        self.history = _Settings(output_collection=True, snapshot_project=True, directories_to_watch=["logs"])
        self.amlcompute = _Settings(vm_size=None, vm_priority=None, name=None, cluster_max_node_count=None)
        self.spark = _Settings(configuration={})
        self.auto_prepare_environment = True
        self.prepare_environment: Any = None
        self.distributed_job_config: Any = None

    def distribution_config(self) -> Any:
        """Returns the configuration of the distribution, None if there is none. Raises UserErrorException."""
        if self.distributed_job_config is not None:
            return self.distributed_job_config
        communicator = str(self.communicator or "None").lower()
        if communicator in ("openmpi", "intelmpi", "mpi"):
            nodes = max(self.node_count, self.mpi.node_count)
            return MpiConfiguration(self.mpi.process_count_per_node, nodes)
        if communicator in ("nccl", "gloo"):
            count = self.pytorch.process_count
            return PyTorchConfiguration(communicator, count, max(self.node_count, self.pytorch.node_count))
        if communicator == "parameterserver":
            return self.tensorflow
        if communicator != "none":
            raise UserErrorException(f"communicator: {self.communicator} is not offered.")
        return None


class ScriptRunConfig:
    """Either `script` with `arguments`, or `command`."""

    def __init__(
        self,
        source_directory: Any = None,
        script: Any = None,
        arguments: Iterable[Any] | None = None,
        run_config: RunConfiguration | None = None,
        _telemetry_values: Any = None,
        compute_target: Any = None,
        environment: Environment | None = None,
        distributed_job_config: Any = None,
        resume_from: Any = None,
        max_run_duration_seconds: int | None = None,
        command: Any = None,
        docker_runtime_config: Any = None,
    ) -> None:
        if command and (script or arguments):
            raise UserErrorException("ScriptRunConfig: give either command, or script with arguments.")
        if isinstance(arguments, (str, Mapping)):
            raise UserErrorException(
                "ScriptRunConfig: arguments must be a list, one entry for each, such as ['--epochs', 50]."
            )
        self.source_directory = source_directory
        self.script = script
        self.arguments = None if arguments is None else list(arguments)
        self.command = command
        self.run_config = RunConfiguration() if run_config is None else run_config
        self.resume_from = resume_from
        if compute_target is not None:
            self.run_config.target = compute_target
        if environment is not None:
            self.run_config.environment = environment
        if distributed_job_config is not None:
            self.run_config.distributed_job_config = distributed_job_config
        if max_run_duration_seconds is not None:
            self.run_config.max_run_duration_seconds = max_run_duration_seconds
        if docker_runtime_config is not None:
            self.run_config.docker = docker_runtime_config

    def __repr__(self) -> str:
        what = f"command={self.command!r}" if self.command else f"script={self.script!r}"
        return f"ScriptRunConfig(source_directory={self.source_directory!r}, {what})"
