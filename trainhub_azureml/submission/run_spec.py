"""From a ScriptRunConfig to the RunSpec of a hub. Nothing is asked and nothing is sent here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trainhub_azureml.data.run_data import RunData
from trainhub_azureml.distributions import DistributionChoice, distribution_of
from trainhub_azureml.environment import Environment
from trainhub_azureml.estimators.estimator import Estimator, script_run_config_of
from trainhub_azureml.estimators.framework_environment import FrameworkEnvironment
from trainhub_azureml.exceptions import ComputeTargetException, UserErrorException
from trainhub_azureml.local_files.mapping import NameMapping
from trainhub_azureml.run_configuration import RunConfiguration, ScriptRunConfig
from trainhub_azureml.submission import environment_choice
from trainhub_azureml.submission.command_line import (
    argument_text,
    replace_init_method,
    split_command,
)
from trainhub_azureml.submission.environment_choice import EnvironmentChoice
from trainhub_azureml.submission.framework_packages import with_framework
from trainhub_azureml.submission.job_package import python_path
from trainhub_azureml.submission.placement import choose_target, gpus_per_node
from trainhub_sdk.spec import RunSpec

if TYPE_CHECKING:
    from trainhub_sdk.records.environments import Environment as HubEnvironment
    from trainhub_sdk.records.machines import Cluster, Node

_PORT = "6105"
_HOROVOD = re.compile(r"^\s*(?:import|from)\s+horovod\b", re.MULTILINE)
_NUMPY_ALIAS = re.compile(r"\bnp\.(float|int|bool|object|str|long|unicode)\b(?!_)")


class HubFacts(NamedTuple):
    """What the hub has; `clusters` and `nodes` are None if there is none to ask."""

    clusters: Sequence[Cluster] | None = None
    nodes: Sequence[Node] | None = None
    environments: Sequence[HubEnvironment] = ()


class PlannedRun(NamedTuple):
    """`spec`: as JSON, without the source and without the environment; `folder`: the source; `notes`: what
    was guessed."""

    spec: Mapping[str, Any]
    folder: str
    environment: EnvironmentChoice
    notes: tuple[str, ...]

    def to_json(self, environment: EnvironmentChoice) -> dict[str, Any]:
        """Returns the spec with this environment."""
        named = {"name": environment.name, "version": environment.version}
        return {**self.spec, "environment": {key: value for key, value in named.items() if value}}


def plan_run(
    config: Any,
    experiment: str,
    workspace: str,
    mapping: NameMapping,
    facts: HubFacts,
    tags: Mapping[str, Any] | None = None,
    data: RunData | None = None,
) -> PlannedRun:
    """`data`: what is among the arguments. Raises UserErrorException, and ComputeTargetException for a target
    that the hub does not have."""
    script_config = read_config(config)
    data = data or RunData()
    run_config = script_config.run_config
    distribution = distribution_of(run_config.distribution_config())
    notes = [*data.notes]
    folder = os.fspath(script_config.source_directory or ".")
    launch = _launch(script_config, folder, data, notes)
    resources = _resources(run_config, distribution, mapping, facts, notes)
    described = _environment(run_config, mapping, facts, notes)
    environment = environment_choice.choose(described, mapping, facts.environments)
    timeout_s = run_config.max_run_duration_seconds
    spec = RunSpec(
        experiment=experiment,
        distribution=distribution.distribution if distribution else None,
        environment_variables={**_variables(run_config, workspace), **data.variables},
        inputs=data.inputs,
        tags={str(key): "" if value is None else str(value) for key, value in (tags or {}).items()},
        timeout_s=int(timeout_s) if timeout_s else None,
        other={"outputs": data.outputs} if data.outputs else {},
        **launch,
        **resources,
    )
    return PlannedRun(spec.to_json(), folder, environment, (*notes, *environment.notes))


def read_config(config: Any) -> ScriptRunConfig:
    """Returns what `submit` gets as a ScriptRunConfig. Raises UserErrorException for what it is not."""
    if isinstance(config, ScriptRunConfig):
        return config
    if isinstance(config, Estimator):
        return script_run_config_of(config)
    if isinstance(config, RunConfiguration) and (config.script or config.command):
        return ScriptRunConfig(".", config.script, config.arguments or None, config, command=config.command)
    raise UserErrorException(f"submit: {type(config).__name__} is not offered. Submit a ScriptRunConfig.")


def _launch(config: ScriptRunConfig, folder: str, data: RunData, notes: list[str]) -> dict[str, Any]:
    """Returns the fields of the spec that say what is started."""
    command = config.command or config.run_config.command
    if command:
        if config.script or config.arguments:
            raise UserErrorException("ScriptRunConfig: give either command, or script with arguments.")
        return {"command": [replace_init_method(part) for part in split_command(data.command(command))]}
    script = config.script or config.run_config.script
    if not script:
        raise UserErrorException("ScriptRunConfig: script is missing: the file in source_directory to run.")
    path = _script_path(os.fspath(script), folder)
    _read_script(os.path.join(folder, path), notes)
    arguments = config.arguments if config.arguments is not None else config.run_config.arguments
    texts = [replace_init_method(argument_text(argument)) for argument in data.arguments(arguments or ())]
    return {"script": path, "arguments": texts}


def _script_path(script: str, folder: str) -> str:
    if os.path.isabs(script):
        script = os.path.relpath(script, folder)
    path = os.path.normpath(script).replace(os.sep, "/")
    if path.startswith("../"):
        raise UserErrorException(f"The script {script} is not in source_directory, {folder}.")
    if not os.path.isfile(os.path.join(folder, path)):
        raise UserErrorException(f"There is no script {path} in source_directory, {os.path.abspath(folder)}.")
    return path


def _read_script(path: str, notes: list[str]) -> None:
    """Adds notes about what is known to fail."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise UserErrorException(f"{path} cannot be read: {error.strerror}.") from error
    if _PORT in text:
        notes.append(
            f"{path} names the port {_PORT}: read MASTER_PORT instead, which may be another one here."
        )
    if _HOROVOD.search(text):
        notes.append(
            f"{path} imports horovod: if its environment lacks it, map that to TrainHub-Horovod-0.28 or "
            "TrainHub-Horovod-TensorFlow-0.28."
        )
    alias = _NUMPY_ALIAS.search(text)
    if alias:
        notes.append(f"{path} uses {alias.group()}, which NumPy 1.24 has removed: require numpy<1.24.")


def _resources(
    config: RunConfiguration,
    distribution: DistributionChoice | None,
    mapping: NameMapping,
    facts: HubFacts,
    notes: list[str],
) -> dict[str, Any]:
    name = config.target if isinstance(config.target, str) else getattr(config.target, "name", "") or ""
    target = choose_target(name, mapping, facts.clusters)
    if target is None:
        names = ", ".join(row.name for row in facts.clusters or ()) or "none"
        raise ComputeTargetException(
            f"There is no cluster {name} on the hub; there are: {names}. Map it by "
            f'[compute."{name}"] in trainhub-azureml.toml.'
        )
    node_count = distribution.node_count if distribution else int(config.node_count or 1)
    processes = distribution.processes_per_node if distribution else 1
    gpus, note = gpus_per_node(target, processes, node_count, facts.nodes)
    notes += [text for text in (target.note, note) if text]
    resources: dict[str, Any] = {"cluster": target.cluster, "gpus_per_node": gpus}
    if distribution is None and node_count > 1:
        resources["node_count"] = node_count
    return resources


def _environment(
    config: RunConfiguration, mapping: NameMapping, facts: HubFacts, notes: list[str]
) -> Environment | None:
    environment: Environment | None = config.environment
    if isinstance(environment, str):
        raise UserErrorException(
            f"environment: give Environment.get(workspace=ws, name={environment!r}), not the name alone."
        )
    if isinstance(environment, FrameworkEnvironment):
        return with_framework(environment, mapping, facts.environments, notes)
    if environment is None or environment.name or environment.python.user_managed_dependencies:
        return environment
    is_empty = not environment.python.conda_dependencies.as_dict()["dependencies"]
    has_source = environment.docker.base_dockerfile or environment.python.conda_dependencies_file
    return None if is_empty and not has_source else environment


def _variables(config: RunConfiguration, workspace: str) -> dict[str, str]:
    own = dict(getattr(config.environment, "environment_variables", None) or {})
    own.update(config.environment_variables or {})
    variables = {str(name): "" if value is None else str(value) for name, value in own.items()}
    variables["PYTHONPATH"] = python_path(variables.get("PYTHONPATH", ""))
    # By this one the hub also sets Azure's names for the run, the rank and the head in each process.
    variables.setdefault("AZUREML_ARM_WORKSPACE_NAME", workspace)
    return variables
