"""The estimator for any framework, and what all of them become."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trainhub_azureml.data.data_reference import DataReference
from trainhub_azureml.distributions import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from trainhub_azureml.environment import Environment
from trainhub_azureml.estimators.framework_environment import OPTIONS, framework_environment
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.notices import warn
from trainhub_azureml.run_configuration import DockerConfiguration, RunConfiguration, ScriptRunConfig


class Gloo(PyTorchConfiguration):
    """`distributed_training` of PyTorch with the backend gloo. The numbers are those of the estimator."""

    def __init__(self) -> None:
        super().__init__("Gloo")


class Nccl(PyTorchConfiguration):
    """`distributed_training` of PyTorch with the backend nccl. The numbers are those of the estimator."""

    def __init__(self) -> None:
        super().__init__("Nccl")


class Estimator:
    """A script with its arguments, environment and distribution. `run_config` may be changed until it is
    submitted. `script_params`: a value for each argument; an empty one makes the argument a flag, and a list
    gives it several. `options`: those of the environment."""

    # In the names of curated environments; "" = the packages of the script are all.
    framework = ""

    def __init__(
        self,
        source_directory: Any,
        *,
        compute_target: Any = None,
        vm_size: Any = None,
        vm_priority: Any = None,
        entry_script: Any = None,
        script_params: Mapping[str, Any] | None = None,
        node_count: int = 1,
        process_count_per_node: int = 1,
        distributed_backend: str | None = None,
        distributed_training: Any = None,
        use_gpu: bool = False,
        environment_definition: Environment | None = None,
        environment_variables: Mapping[str, Any] | None = None,
        inputs: Iterable[Any] | None = None,
        source_directory_data_store: Any = None,
        shm_size: str | None = None,
        resume_from: Any = None,
        max_run_duration_seconds: int | None = None,
        framework_version: Any = None,
        **options: Any,
    ) -> None:
        _check_options(type(self).__name__, options, vm_size or vm_priority, environment_definition)
        self.source_directory = os.fspath(source_directory or ".")
        self.entry_script = entry_script
        self.script_params = dict(script_params or {})
        self.process_count_per_node = process_count_per_node
        self.distributed_training = distributed_training or _configuration_of(distributed_backend)
        self.inputs = list(inputs or ())
        self.resume_from = resume_from
        config = self.run_config = RunConfiguration(script=entry_script)
        config.node_count = node_count
        config.max_run_duration_seconds = max_run_duration_seconds
        config.environment_variables = dict(environment_variables or {})
        config.docker = DockerConfiguration(options.get("use_docker", True), shm_size=shm_size)
        if compute_target is not None:
            config.target = compute_target
        config.environment = environment_definition or framework_environment(
            self.framework,
            framework_version,
            use_gpu=use_gpu,
            source_directory=self.source_directory,
            **options,
        )

    @property
    def conda_dependencies(self) -> Any:
        """The packages that the script adds to those of the framework."""
        return self.run_config.environment.python.conda_dependencies

    @property
    def _estimator_config(self) -> RunConfiguration:
        """Private in the SDK v1, and used by published examples."""
        return self.run_config

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source_directory!r}, entry_script={self.entry_script!r})"


def script_run_config_of(estimator: Estimator) -> ScriptRunConfig:
    """Returns the ScriptRunConfig that an estimator stands for. It shares the `run_config`, and its
    `arguments` are a list of its own. Raises UserErrorException."""
    name = type(estimator).__name__
    if not estimator.entry_script:
        raise UserErrorException(f"{name}: entry_script is missing: the file in source_directory to run.")
    warn(f"{name}: estimators were deprecated in the SDK v1 itself; ScriptRunConfig does the same.")
    arguments: list[Any] = []
    for key, value in estimator.script_params.items():
        # Data is left as it is; only texts and None can be empty. A list is for `nargs` of the script.
        is_flag = value is None or (isinstance(value, str) and not value)
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        arguments += [key] if is_flag else [key, *values]
    for data in estimator.inputs:
        _add_input(estimator.run_config, data)
    return ScriptRunConfig(
        source_directory=estimator.source_directory,
        script=estimator.entry_script,
        arguments=arguments,
        run_config=estimator.run_config,
        distributed_job_config=_distribution(estimator),
        resume_from=estimator.resume_from,
    )


def _check_options(
    name: str, options: Mapping[str, Any], vm: Any, environment_definition: Environment | None
) -> None:
    """`vm`: the size or the priority of machines to make."""
    if vm:
        raise UserErrorException(
            f"{name}: vm_size and vm_priority are not offered, because no machines are made: give "
            "compute_target, the name of a cluster."
        )
    public = [option for option in options if not option.startswith("_")]
    wrong = [option for option in public if option not in OPTIONS]
    if wrong:
        raise UserErrorException(f"{name}: {wrong[0]} is not offered; the options are {_listed(OPTIONS)}.")
    ignored = [option for option in public if option != "use_docker" and options[option]]
    if environment_definition is not None and ignored:
        warn(f"{name}: environment_definition is used, and {_listed(ignored)} not: put it in there.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _configuration_of(backend: str | None) -> Any:
    """Returns the distribution that the older parameter `distributed_backend` names."""
    kinds: dict[str, Callable[[], Any]] = {
        "mpi": MpiConfiguration,
        "ps": TensorflowConfiguration,
        "gloo": Gloo,
        "nccl": Nccl,
        "": lambda: None,
    }
    kind = kinds.get(str(backend or "").lower())
    if kind is None:
        raise UserErrorException(f"distributed_backend: {backend!r} is none of mpi, ps, gloo and nccl.")
    return kind()


def _distribution(estimator: Estimator) -> Any:
    """Returns the configuration with the numbers of the estimator. Several processes without one are MPI's,
    as in the SDK v1."""
    config = estimator.distributed_training
    nodes, per_node = estimator.run_config.node_count, estimator.process_count_per_node
    if config is None and max(nodes, per_node) > 1:
        config = MpiConfiguration()
    if isinstance(config, MpiConfiguration):
        return MpiConfiguration(max(per_node, config.process_count_per_node), max(nodes, config.node_count))
    if isinstance(config, PyTorchConfiguration):
        nodes = max(nodes, config.node_count)
        count = config.process_count or (nodes * per_node if per_node > 1 else None)
        return PyTorchConfiguration(config.communication_backend, count, nodes)
    return config


def _add_input(config: RunConfiguration, data: Any) -> None:
    if isinstance(data, DataReference):
        config.data_references[data.data_reference_name] = data
        return
    name = getattr(data, "name", None)
    if not isinstance(name, str):
        raise UserErrorException(f"inputs: {data!r} has no name: give dataset.as_named_input('NAME').")
    config.data[name] = data
