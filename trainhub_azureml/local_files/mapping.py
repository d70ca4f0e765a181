"""The mapping file `trainhub-azureml.toml`: what the names of scripts mean on this hub."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.local_files.config_file import places
from trainhub_azureml.local_files.toml_subset import parse_toml

NAME = "trainhub-azureml.toml"
_SECTIONS = ("compute", "environment", "datastore", "address")


class ComputeMapping(NamedTuple):
    """`gpus_per_node`: a number or "all", None if the mapping says nothing."""

    cluster: str
    gpus_per_node: int | str | None = None


class EnvironmentMapping(NamedTuple):
    """`use`: the name of an environment, perhaps with `@VERSION`; or the lines of `requirements`, for the
    version `python`, "" for any."""

    use: str = ""
    requirements: tuple[str, ...] = ()
    python: str = ""


class DatastoreMapping(NamedTuple):
    """`use`: the name of a datastore of the hub; or `path`: a folder that the nodes have."""

    use: str = ""
    path: str = ""


class NameMapping(NamedTuple):
    """`file`: where it was read from, "" if there is none; `addresses`: the file of this machine for an
    address. Names, but not addresses, are compared in lower case."""

    file: str = ""
    compute: Mapping[str, ComputeMapping] = {}
    environments: Mapping[str, EnvironmentMapping] = {}
    datastores: Mapping[str, DatastoreMapping] = {}
    addresses: Mapping[str, str] = {}

    def compute_for(self, name: str) -> ComputeMapping | None:
        return self.compute.get(name.lower())

    def environment_for(self, name: str) -> EnvironmentMapping | None:
        return self.environments.get(name.lower())

    def datastore_for(self, name: str) -> DatastoreMapping | None:
        return self.datastores.get(name.lower())


def load_mapping() -> NameMapping:
    """Returns the mapping in the current folder or above it, else that beside the profiles of the SDK. Raises
    UserErrorException for a file that is wrong."""
    from trainhub_sdk.profiles import config_file

    beside = os.path.join(os.path.dirname(str(config_file())), NAME)
    file = next(filter(os.path.isfile, [*places(NAME), beside]), "")
    return read_mapping(file) if file else NameMapping()


def read_mapping(file: str) -> NameMapping:
    """Raises UserErrorException."""
    try:
        with open(file, encoding="utf-8") as stream:
            data = parse_toml(stream.read())
    except (OSError, ValueError) as error:
        raise UserErrorException(f"{file} cannot be read: {error}") from error
    unallowed = sorted(set(data) - set(_SECTIONS))
    if unallowed:
        raise UserErrorException(f"{file}: [{unallowed[0]}] is none of {', '.join(_SECTIONS)}.")
    compute = {
        name.lower(): ComputeMapping(**_fields(file, f'compute."{name}"', table, {"cluster": str}, _COMPUTE))
        for name, table in data.get("compute", {}).items()
    }
    environments = {
        name.lower(): _environment(file, name, table) for name, table in data.get("environment", {}).items()
    }
    datastores = {
        name.lower(): _datastore(file, name, table) for name, table in data.get("datastore", {}).items()
    }
    folder = os.path.dirname(os.path.abspath(file))
    addresses = {
        url: os.path.join(folder, _fields(file, f'address."{url}"', table, _ADDRESS, _ADDRESS)["path"])
        for url, table in data.get("address", {}).items()
    }
    return NameMapping(file, compute, environments, datastores, addresses)


_COMPUTE = {"cluster": str, "gpus_per_node": int}
_ENVIRONMENT = {"use": str, "requirements": list, "python": str}
_DATASTORE = {"use": str, "path": str}
_ADDRESS = {"path": str}


def _environment(file: str, name: str, table: Any) -> EnvironmentMapping:
    values = _fields(file, f'environment."{name}"', table, {}, _ENVIRONMENT)
    if bool(values.get("use")) == bool(values.get("requirements")):
        raise UserErrorException(f'{file}: [environment."{name}"] needs either use or requirements.')
    lines = tuple(str(line) for line in values.pop("requirements", ()))
    return EnvironmentMapping(requirements=lines, **values)


def _datastore(file: str, name: str, table: Any) -> DatastoreMapping:
    values = _fields(file, f'datastore."{name}"', table, {}, _DATASTORE)
    if bool(values.get("use")) == bool(values.get("path")):
        raise UserErrorException(f'{file}: [datastore."{name}"] needs either use or path.')
    return DatastoreMapping(**values)


def _fields(
    file: str, place: str, table: Any, required: Mapping[str, type], allowed: Mapping[str, type]
) -> dict[str, Any]:
    """Returns the checked values of a table."""
    if not isinstance(table, dict):
        raise UserErrorException(f"{file}: [{place}] must be a table.")
    for key, value in table.items():
        if key not in allowed:
            raise UserErrorException(f"{file}: [{place}] has {key}, which is none of {', '.join(allowed)}.")
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        is_count |= value == "all"
        if not (is_count if allowed[key] is int else isinstance(value, allowed[key])):
            kind = {str: "a string", int: 'a whole number or "all"', list: "a list of strings"}[allowed[key]]
            raise UserErrorException(f"{file}: [{place}] {key} must be {kind}.")
    missing = [key for key in required if not table.get(key)]
    if missing:
        raise UserErrorException(f"{file}: [{place}] needs {missing[0]}.")
    return dict(table)
