"""Environments: what a script asks for. `submission.environment_choice` decides what it gets on the hub."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainhub_azureml.conda_dependencies import CondaDependencies, requirement_lines
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.notices import warn
from trainhub_azureml.submission.dry_run import is_dry_run

if TYPE_CHECKING:
    from trainhub_azureml.submission.environment_choice import NamedEnvironment
    from trainhub_azureml.workspace import Workspace

RESERVED = "azureml"
# What a dry run would have registered, by name.
_registered: dict[str, Environment] = {}
CPU_IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04"
GPU_IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-cuda11.1-cudnn8-ubuntu20.04"


class ContainerRegistry:
    """A registry of images; its password belongs into a secret of the hub."""

    def __init__(self) -> None:
        self.address: str | None = None
        self.username: str | None = None
        self.password: str | None = None


class DockerSection:
    """All of it can be set; `base_image` and `base_dockerfile` count, the rest has no meaning on a hub."""

    def __init__(self, **values: Any) -> None:
        self.enabled = False
        self.base_image: str | None = CPU_IMAGE
        self.base_dockerfile: Any = None
        self.base_image_registry = ContainerRegistry()
        self.arguments: list[str] = []
        self.shared_volumes = True
        self.shm_size: str | None = None
        self.gpu_support: bool | None = None
        self.platform: Any = None
        for name, value in values.items():
            setattr(self, name, value)


class PythonSection:
    def __init__(self, **values: Any) -> None:
        self.user_managed_dependencies = False
        self.interpreter_path = "python"
        self.conda_dependencies_file: Any = None
        self.base_conda_environment: Any = None
        self.conda_dependencies: CondaDependencies = CondaDependencies()
        for name, value in values.items():
            setattr(self, name, value)


class SparkSection:
    """Only for scripts that set its attributes: there is no Spark on a hub."""

    def __init__(self, **values: Any) -> None:
        self.repositories: list[str] = []
        self.packages: list[Any] = []
        self.precache_packages = True
        for name, value in values.items():
            setattr(self, name, value)


class Environment:
    """`name` may be None until it is registered or used. Further arguments are ignored with a warning."""

    def __init__(self, name: str | None = None, **others: Any) -> None:
        if others:
            warn(
                f"Environment({name!r}) ignores {', '.join(others)}: use Environment.get for one of the hub."
            )
        self.name = name
        self.version: str | None = None
        self.docker = DockerSection()
        self.python = PythonSection()
        self.spark = SparkSection()
        self.databricks: Any = None
        self.r: Any = None
        self.inferencing_stack_version: Any = None
        self.environment_variables: dict[str, Any] = {}
        # What `get` has returned: the name on the hub, or that of a curated one, and its packages.
        self._base = ""
        self._base_packages: CondaDependencies | None = None

    @staticmethod
    def get(workspace: Workspace, name: str, version: str | None = None) -> Environment:
        """Returns an environment of the hub, or what it has in place of a curated one. Raises
        UserErrorException if there is none."""
        from trainhub_azureml.submission.environment_choice import find_named

        if is_dry_run() and name in _registered:
            return copy.deepcopy(_registered[name])
        choice = find_named(name, version, workspace._mapping(), workspace._environments())
        if choice is None:
            raise UserErrorException(
                f"There is no environment {name} on the hub, and its name does not say what it is: map it by "
                f'[environment."{name}"] in trainhub-azureml.toml.'
            )
        return Environment._of_choice(name, version, choice)

    @staticmethod
    def _of_choice(name: str, version: str | None, choice: NamedEnvironment) -> Environment:
        """Returns what the hub has for a name, as a copy that may be changed."""
        environment = Environment(name)
        environment.version = version or choice.version or None
        environment._base = choice.reference
        for line in choice.packages:
            environment.python.conda_dependencies.add_pip_package(line)
        environment._base_packages = copy.deepcopy(environment.python.conda_dependencies)
        environment.docker.base_image = None
        return environment

    @staticmethod
    def list(workspace: Workspace) -> Mapping[str, Environment]:
        """Returns the environments of the hub by name."""
        names = {row.name for row in workspace._environments() if row.kind != "system"}
        names |= set(_registered) if is_dry_run() else set()
        return {name: Environment.get(workspace, name) for name in sorted(names)}

    @staticmethod
    def from_conda_specification(name: str, file_path: Any) -> Environment:
        """Returns an environment with the packages of a conda file. Raises UserErrorException."""
        environment = Environment(name)
        environment.python.conda_dependencies = CondaDependencies(file_path)
        return environment

    @staticmethod
    def from_pip_requirements(name: str, file_path: Any, pip_version: Any = None) -> Environment:
        """Returns an environment with the packages of a file of requirements. Raises UserErrorException."""
        environment = Environment(name)
        try:
            with open(file_path, encoding="utf-8") as file:
                lines = requirement_lines(file.read())
        except OSError as error:
            raise UserErrorException(f"{file_path} cannot be read: {error.strerror}.") from error
        for line in lines:
            environment.python.conda_dependencies.add_pip_package(line)
        return environment

    @staticmethod
    def from_docker_image(
        name: str,
        image: str,
        container_registry: Any = None,
        conda_specification: Any = None,
        pip_requirements: Any = None,
    ) -> Environment:
        environment = Environment(name)
        if conda_specification:
            environment = Environment.from_conda_specification(name, conda_specification)
        elif pip_requirements:
            environment = Environment.from_pip_requirements(name, pip_requirements)
        environment.docker.base_image = image
        environment.python.user_managed_dependencies = not (conda_specification or pip_requirements)
        return environment

    @staticmethod
    def from_dockerfile(name: str, dockerfile: Any, **others: Any) -> Environment:
        """`dockerfile`: its text, or its path."""
        environment = Environment(name)
        if others.get("conda_specification") or others.get("pip_requirements"):
            warn(f"Environment {name}: put the packages into the Dockerfile; the given files are ignored.")
        environment.docker.base_image = None
        environment.docker.base_dockerfile = dockerfile
        environment.python.user_managed_dependencies = True
        return environment

    def clone(self, new_name: str) -> Environment:
        environment = copy.deepcopy(self)
        environment.name, environment.version = new_name, None
        return environment

    def register(self, workspace: Workspace) -> Environment:
        """Makes it on the hub, unless it has the same already, or this is a dry run. Raises
        UserErrorException for a reserved name, and ExperimentExecutionException if the hub cannot make it."""
        from trainhub_azureml.submission.environment_choice import choose, is_changed
        from trainhub_azureml.submission.environment_versions import ensure

        if (self.name or "").lower().startswith(RESERVED) and is_changed(self):
            raise UserErrorException(
                f"{self.name}: names that begin with AzureML are reserved for curated environments. Give it "
                "a name of its own, by clone(new_name=…) or name=…."
            )
        choice = choose(self, workspace._mapping(), workspace._environments())
        for note in choice.notes:
            warn(note)
        if is_dry_run():
            warn(f"The environment {self.name} is not registered in a dry run.")
            _registered[str(self.name)] = copy.deepcopy(self)
            return self
        self.version = ensure(workspace._client(), choice).version or None
        return self

    def build(self, workspace: Workspace, image_build_compute: Any = None) -> Environment:
        """Makes it on the hub; it can be used as soon as this returns."""
        return self.register(workspace)

    def wait_for_completion(self, show_output: bool = True) -> None:
        """For the result of `build`, which is complete."""

    def save_to_directory(self, path: Any, overwrite: bool = False) -> None:
        """Writes `conda_dependencies.yml` and `azureml_environment.json` into the folder `path`. Raises
        UserErrorException if it exists."""
        import json

        folder = os.fspath(path)
        if os.path.isdir(folder) and os.listdir(folder) and not overwrite:
            raise UserErrorException(f"{folder} is not empty: give another path, or overwrite=True.")
        os.makedirs(folder, exist_ok=True)
        self.python.conda_dependencies.save_to_file(folder)
        description = {
            "name": self.name,
            "version": self.version,
            "environmentVariables": {
                str(key): str(value) for key, value in self.environment_variables.items()
            },
            "python": {"userManagedDependencies": self.python.user_managed_dependencies},
            "docker": {"baseImage": self.docker.base_image, "enabled": self.docker.enabled},
        }
        with open(os.path.join(folder, "azureml_environment.json"), "w", encoding="utf-8") as file:
            json.dump(description, file, indent=4)

    @staticmethod
    def load_from_directory(path: Any) -> Environment:
        """Returns what `save_to_directory` has written. Raises UserErrorException."""
        import json

        file = os.path.join(os.fspath(path), "azureml_environment.json")
        try:
            with open(file, encoding="utf-8") as stream:
                data = json.load(stream)
        except (OSError, ValueError) as error:
            raise UserErrorException(f"{file} cannot be read: {error}") from error
        conda = os.path.join(os.fspath(path), "conda_dependencies.yml")
        environment = Environment.from_conda_specification(data.get("name"), conda)
        environment.environment_variables = dict(data.get("environmentVariables") or {})
        return environment

    def __repr__(self) -> str:
        return f"Environment(Name: {self.name}, Version: {self.version})"
