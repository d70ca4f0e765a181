"""Which environment of the hub a run gets for the one that its script describes. Nothing is asked and nothing
is made here."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from trainhub_azureml.conda_dependencies import CondaDependencies, package_name
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.local_files.mapping import EnvironmentMapping, NameMapping

if TYPE_CHECKING:
    from trainhub_azureml.environment import Environment
    from trainhub_sdk.records.environments import Environment as HubEnvironment

SYSTEM = "system"
# Tried one after another against the name of a curated environment.
_PATTERNS = (
    ("lightning", "TrainHub-Lightning-"),
    ("deepspeed", "TrainHub-DeepSpeed-"),
    ("transformers|huggingface", "TrainHub-Transformers-"),
    ("pytorch|torch|acpt", "TrainHub-PyTorch-"),
    ("tensorflow|keras", "TrainHub-TensorFlow-"),
)
# For machines that cannot ask a hub, which is only the case in a dry run.
_NEWEST = {
    "TrainHub-Lightning-": "TrainHub-Lightning-2.6",
    "TrainHub-DeepSpeed-": "TrainHub-DeepSpeed-0.19",
    "TrainHub-Transformers-": "TrainHub-Transformers-5",
    "TrainHub-PyTorch-": "TrainHub-PyTorch-2.13",
    "TrainHub-TensorFlow-": "TrainHub-TensorFlow-2.21",
}
_SCIKIT = ("scikit-learn", "numpy", "pandas", "scipy", "joblib")
_AZURE_IMAGE = re.compile(
    r"mcr\.microsoft\.com/(azureml|azure-ml|aml)/(openmpi|intelmpi|base|minimal)", re.IGNORECASE
)


class NamedEnvironment(NamedTuple):
    """`reference`: its name on the hub, perhaps with `@VERSION`; "" if it has to be made of `packages`."""

    reference: str
    version: str = ""
    packages: Sequence[str] = ()
    python: str = ""
    note: str = ""


class EnvironmentChoice(NamedTuple):
    """`body`: of the request that makes it, None if the hub has it; `notes`: what was guessed or dropped."""

    name: str
    version: str = ""
    body: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()


def find_named(
    name: str, version: str | None, mapping: NameMapping, rows: Iterable[HubEnvironment]
) -> NamedEnvironment | None:
    """Returns what the hub has for a name: by the mapping, of the same name, or by what the name says; None
    if that is nothing."""
    rows = list(rows)
    entry = mapping.environment_for(name)
    if entry is not None:
        return _by_mapping(entry, rows)
    same = next((row for row in rows if row.name.lower() == name.lower()), None)
    if same is not None:
        reference = f"{same.name}@{version}" if version and version.isdigit() else same.name
        return NamedEnvironment(reference, version or same.version, same.requirements)
    if not name.lower().startswith("azureml"):
        return None
    return _by_pattern(name, rows)


def _by_mapping(entry: EnvironmentMapping, rows: Sequence[HubEnvironment]) -> NamedEnvironment:
    if entry.requirements:
        return NamedEnvironment("", packages=entry.requirements, python=entry.python)
    row = next((row for row in rows if row.name == entry.use.partition("@")[0]), None)
    return NamedEnvironment(entry.use, packages=row.requirements if row else ())


def _by_pattern(name: str, rows: Sequence[HubEnvironment]) -> NamedEnvironment | None:
    lower = name.lower()
    if re.search("sklearn|scikit", lower):
        note = f"{name} is not on this hub: the newest scikit-learn, pandas and SciPy are used instead."
        return NamedEnvironment("", packages=_SCIKIT, note=note)
    if "minimal" in lower:
        return NamedEnvironment(
            SYSTEM, note=f"{name} is not on this hub: an interpreter of the node is used."
        )
    prefix = next((prefix for pattern, prefix in _PATTERNS if re.search(pattern, lower)), None)
    if prefix is None:
        return None
    usable = [row for row in rows if row.name.startswith(prefix) and not row.notice]
    reference = usable[0].name if usable else _NEWEST[prefix]
    note = f'{name} is not on this hub: {reference} is used instead. Map it by [environment."{name}"].'
    return NamedEnvironment(reference, packages=usable[0].requirements if usable else (), note=note)


def is_changed(environment: Environment) -> bool:
    """Returns whether an environment is something else than what `get` has returned."""
    if not environment._base and environment._base_packages is None:
        return True
    return (
        environment.python.conda_dependencies != environment._base_packages
        or bool(environment.docker.base_dockerfile)
        or own_image(environment) != ""
    )


def choose(
    environment: Environment | None, mapping: NameMapping, rows: Sequence[HubEnvironment]
) -> EnvironmentChoice:
    """Returns the environment of a run. Raises UserErrorException for one that cannot be made."""
    if environment is None:
        return _system(rows, "", "No environment is given: an interpreter of the node is used.")
    name = environment.name or ""
    entry = mapping.environment_for(name) if name else None
    if entry is None and not is_changed(environment):
        if not environment._base:  # made of packages, as for scikit-learn
            return _of_packages(environment, name, rows)
        reference, _, version = environment._base.partition("@")
        named = find_named(name, environment.version, mapping, rows)
        return EnvironmentChoice(reference, version, None, (named.note,) if named and named.note else ())
    if entry is not None and entry.use:
        reference, _, version = entry.use.partition("@")
        return EnvironmentChoice(reference, version)
    if entry is not None:
        return _of_lines(name, entry.requirements, entry.python)
    if name.lower().startswith("azureml"):
        raise UserErrorException(
            f"{name} was changed, and names that begin with AzureML are reserved for curated environments. "
            "Give it a name of its own: environment.clone(new_name=…)."
        )
    if environment.docker.base_dockerfile:
        return _of_dockerfile(environment, name)
    if environment.python.user_managed_dependencies:
        image = own_image(environment)
        if image:
            body = {"kind": "image", "image": image}
            return EnvironmentChoice(_name_for(name, body), "", body)
        note = f"{name or 'The environment'} manages its packages itself: an interpreter of the node is used."
        return _system(rows, "", note)
    return _of_packages(environment, name, rows)


def _of_packages(environment: Environment, name: str, rows: Sequence[HubEnvironment]) -> EnvironmentChoice:
    file = environment.python.conda_dependencies_file
    packages = CondaDependencies(file) if file else environment.python.conda_dependencies
    pip, notes = without_azure(packages._pip)
    conda, conda_notes = without_azure(packages._conda)
    notes += conda_notes
    image = own_image(environment)
    if image:
        notes.append(f"The image {image} is not used: packages are installed on the node, without an image.")
    python = ".".join((packages.get_python_version() or "").strip("*").rstrip(".").split(".")[:2])
    others = [line for line in conda if package_name(line) not in ("python", "pip")]
    if others:
        remaining = CondaDependencies()
        remaining._channels, remaining._conda, remaining._pip = list(packages._channels), conda, pip
        if "python" not in map(package_name, conda):
            remaining._conda = ["python", *conda]
        body: dict[str, Any] = {"kind": "conda", "conda": remaining.serialize_to_string()}
        return EnvironmentChoice(_name_for(name, body), "", body, tuple(notes))
    if not [line for line in pip if not line.startswith("-")]:
        what = f"{name} names no packages" if name else "The environment names no packages"
        choice = _system(rows, python, f"{what}: an interpreter of the node is used.")
        return choice._replace(notes=(*notes, *choice.notes))
    return _of_lines(name, pip, python, notes)


def _of_lines(
    name: str, lines: Iterable[str], python: str = "", notes: Iterable[str] = ()
) -> EnvironmentChoice:
    body: dict[str, Any] = {"kind": "pip", "requirements": list(lines)}
    if python:
        body["python"] = python
    return EnvironmentChoice(_name_for(name, body), "", body, tuple(notes))


def _of_dockerfile(environment: Environment, name: str) -> EnvironmentChoice:
    source = environment.docker.base_dockerfile
    text = str(source)
    if isinstance(source, os.PathLike) or ("\n" not in text and os.path.isfile(text)):
        try:
            with open(source, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise UserErrorException(f"The Dockerfile {source} cannot be read: {error.strerror}.") from error
    body = {"kind": "dockerfile", "dockerfile": text}
    return EnvironmentChoice(_name_for(name, body), "", body)


def _system(rows: Sequence[HubEnvironment], python: str, note: str) -> EnvironmentChoice:
    """`python`: the minor version that it should have, "" for any."""
    versions = [row.version for row in rows if row.name == SYSTEM and row.version.startswith(f"{python}.")]
    return EnvironmentChoice(SYSTEM, versions[-1] if python and versions else "", None, (note,))


def without_azure(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the lines without the packages of the SDK v1, which would take the place of this one in the
    job, and notes."""
    remaining, notes = [], []
    for line in lines:
        name = package_name(line)
        if not name.startswith("azureml"):
            remaining.append(line)
            continue
        notes.append(f"{line} is not installed: the run gets TrainHub's own azureml.core.")
        if name == "azureml-mlflow" and "mlflow-skinny" not in remaining:
            remaining.append("mlflow-skinny")
    return remaining, notes


def own_image(environment: Environment) -> str:
    """Returns the image, unless it is one of Azure's base images, which only hold CUDA and MPI."""
    image = str(environment.docker.base_image or "")
    return "" if _AZURE_IMAGE.match(image) else image


def _name_for(name: str, body: Mapping[str, Any]) -> str:
    """Returns a name that the hub takes; for an environment without a name one made of its content."""
    if name:
        text = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "environment"
        return f"my-{text}" if text.lower().startswith(("azureml", "trainhub")) else text
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:8]
    return f"{body['kind']}-{digest}"
