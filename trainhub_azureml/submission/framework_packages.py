"""The environment of an estimator, with what the hub has for its framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainhub_azureml.conda_dependencies import package_name
from trainhub_azureml.environment import Environment
from trainhub_azureml.estimators.framework_environment import FrameworkEnvironment
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.submission.environment_choice import find_named, own_image, without_azure

if TYPE_CHECKING:
    from trainhub_azureml.local_files.mapping import NameMapping
    from trainhub_sdk.records.environments import Environment as HubEnvironment

# What the frameworks are called on PyPI, by their names in conda.
_ON_PYPI = {
    "pytorch": "torch",
    "pytorch-gpu": "torch",
    "pytorch-nightly": "torch",
    "tensorflow-gpu": "tensorflow",
}


def with_framework(
    environment: FrameworkEnvironment, mapping: NameMapping, rows: Sequence[HubEnvironment], notes: list[str]
) -> Environment:
    """Returns the environment of the hub for the framework or, if the script adds packages, one with the
    packages of both; one that manages its packages itself as it is. Raises UserErrorException."""
    if environment.python.user_managed_dependencies or environment.docker.base_dockerfile:
        return environment
    name = environment.framework_name
    choice = find_named(name, None, mapping, rows)
    if choice is None:
        raise UserErrorException(_remedy(name, "the hub has no environment for it"))
    base = Environment._of_choice(name, None, choice)
    image = own_image(environment)
    if image:
        notes.append(f"The image {image} is not used: packages are installed on the node, without an image.")
    own = environment.python.conda_dependencies
    pip, pip_notes = without_azure(own._pip)
    conda, conda_notes = without_azure(own.conda_packages)
    notes += [*pip_notes, *conda_notes]
    packages = base.python.conda_dependencies
    if choice.note and (pip or conda or not choice.reference):
        notes.append(choice.note)  # else `choose` adds it
    if not (pip or conda):
        return base
    if rows and not choice.packages:
        raise UserErrorException(
            _remedy(name, f"{choice.reference} has no list to which packages can be added")
        )
    if choice.python:
        packages.set_python_version(choice.python)
    for channel in own.conda_channels:
        packages.add_channel(channel)
    for line in conda:
        packages.remove_pip_package(_ON_PYPI.get(package_name(line), line))
        packages.add_conda_package(line)
    for line in pip:
        packages.add_pip_package(line)
    # The name of the curated one is reserved: without a name it gets one that is made of its packages.
    base.name = environment.name
    return base


def _remedy(name: str, problem: str) -> str:
    return f'{name}: {problem}. Map it by [environment."{name}"] with requirements in trainhub-azureml.toml.'
