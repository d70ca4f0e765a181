"""The environment of an estimator. `submission.framework_packages` makes it complete when it is submitted."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from trainhub_azureml.conda_dependencies import CondaDependencies
from trainhub_azureml.environment import CPU_IMAGE, GPU_IMAGE, Environment
from trainhub_azureml.exceptions import UserErrorException

# The last two are the older names of those before them.
OPTIONS = frozenset(
    {
        "use_docker",
        "custom_docker_image",
        "custom_docker_base_image",
        "image_registry_details",
        "user_managed",
        "conda_packages",
        "pip_packages",
        "conda_dependencies_file",
        "conda_dependencies_file_path",
        "pip_requirements_file",
        "pip_requirements_file_path",
    }
)


class FrameworkEnvironment(Environment):
    """The packages that a script adds to those of the curated environment `framework_name`, which is a name
    such as `AzureML-PyTorch-1.6-GPU`."""

    def __init__(self, framework_name: str) -> None:
        super().__init__()
        self.framework_name = framework_name


def framework_environment(
    framework: str, version: Any, *, use_gpu: bool, source_directory: str, **options: Any
) -> Environment:
    """Returns the environment that an estimator describes. `framework`: as in the names of curated
    environments, "" for none; `options`: some of OPTIONS. Raises UserErrorException for a file that cannot be
    read."""
    if framework:
        parts = ["AzureML", framework, *([str(version)] if version else []), "GPU" if use_gpu else "CPU"]
        environment: Environment = FrameworkEnvironment("-".join(parts))
    else:
        environment = Environment()
    image = options.get("custom_docker_image") or options.get("custom_docker_base_image")
    environment.docker.enabled = bool(options.get("use_docker", True))
    environment.docker.base_image = image or (GPU_IMAGE if use_gpu else CPU_IMAGE)
    if options.get("image_registry_details") is not None:
        environment.docker.base_image_registry = options["image_registry_details"]
    environment.python.user_managed_dependencies = bool(options.get("user_managed"))
    environment.python.conda_dependencies = _packages(source_directory, options)
    return environment


def _packages(source_directory: str, options: dict[str, Any]) -> CondaDependencies:
    packages = CondaDependencies(_file(source_directory, options, "conda_dependencies_file"))
    requirements = _file(source_directory, options, "pip_requirements_file")
    if requirements:
        for line in CondaDependencies(requirements)._pip:
            packages.add_pip_package(line)
    for package in _lines(options, "conda_packages"):
        packages.add_conda_package(package)
    for package in _lines(options, "pip_packages"):
        packages.add_pip_package(package)
    return packages


def _file(source_directory: str, options: dict[str, Any], name: str) -> str | None:
    """Returns the path of a file, which may be relative to the source or to the current folder."""
    path = options.get(name) or options.get(f"{name}_path")
    if not path:
        return None
    below = os.path.join(source_directory, os.fspath(path))
    return below if os.path.isfile(below) else os.fspath(path)


def _lines(options: dict[str, Any], name: str) -> Iterable[str]:
    packages = options.get(name) or ()
    if isinstance(packages, str):
        raise UserErrorException(f"{name}: give a list of packages, such as [{packages!r}].")
    return packages
