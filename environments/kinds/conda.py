"""Environments made from the YAML of conda: rattler solves and installs what channels have, and pip what is
below `pip:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import yaml

from environments.conda.channel_list import file_error
from environments.conda.conda_lock import CondaLock
from environments.conda.environment_file import FIELD, KEYS, read_environment_file
from environments.conda.pip_part import lock_pip_part
from environments.conda.solver_process import solve_environment
from environments.errors import Unresolvable
from environments.lock_file import LockedPackage, pins_of
from environments.models import EnvironmentVersion
from environments.packages.file_list import record_conda_packages
from environments.packages.glibc_needs import oldest_glibc
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.machine import CONDA
from trainhub_launch.order import EnvironmentSpec


class CondaKind:
    field = FIELD
    has_python = False
    capabilities = frozenset({CONDA})

    def read_body(self, fields: Fields) -> str:
        """The object has the content of the YAML; its text is taken, too."""
        data = fields.raw(FIELD)
        if isinstance(data, str):
            return data
        if not isinstance(data, Mapping):
            raise SpecError(
                FIELD, 'must be an object like the YAML, such as {"dependencies": ["python=3.11"]}'
            )
        _check_shape(data)
        return yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=1000)

    def check(self, source: str) -> None:
        read_environment_file(source, file_error)

    def named_packages(self, source: str) -> tuple[str, ...]:
        return read_environment_file(source).names

    def make_lock(self, version: EnvironmentVersion) -> str:
        source = read_environment_file(version.source)
        lock = solve_environment(source, oldest_glibc(version.environment.workspace))
        if not lock.python:
            raise Unresolvable(
                "The packages contain no Python, with which runs start. Add it to the dependencies, such as "
                "- python=3.11."
            )
        if source.pip is not None:
            lock = replace(lock, pip=lock_pip_part(version, source.pip, lock))
        record_conda_packages(version, lock.packages)
        return lock.to_text()

    def locked_packages(self, lock: str) -> tuple[LockedPackage, ...]:
        return CondaLock.from_text(lock).locked_packages() if lock else ()

    def node_spec(self, version: EnvironmentVersion) -> EnvironmentSpec:
        lock = CondaLock.from_text(version.lock)
        return EnvironmentSpec(
            name=version.environment.name,
            version=str(version.number),
            kind="conda",
            # For lists and comparisons; agents install what `conda` and `lock` name.
            requirements=(
                *(f"{package.name}=={package.version}" for package in lock.packages),
                *pins_of(lock.pip),
            ),
            lock=lock.pip,
            conda={
                "packages": [_without_empty(asdict(package)) for package in lock.packages],
                "virtual_packages": dict(lock.virtual_packages),
            },
        )

    def version_files(self, version: EnvironmentVersion) -> Mapping[str, str]:
        files = {"environment.yml": version.source}
        if not version.lock:
            return files
        lock = CondaLock.from_text(version.lock)
        files |= {"conda-lock.json": version.lock, "explicit.txt": lock.explicit()}
        return files | ({"requirements.lock": lock.pip} if lock.pip else {})


def _without_empty(package: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in package.items() if value
    }


def _check_shape(data: Mapping[str, Any]) -> None:
    """Raises SpecError for values that no environment has, with their place, because the YAML that is made of
    them has lines that nobody has seen."""
    for key, value in data.items():
        if key not in KEYS:
            raise SpecError(FIELD, f"{key!r:.50} has no meaning here; remove it. There are {', '.join(KEYS)}")
        if isinstance(value, str) or value is None:
            continue
        if not isinstance(value, list):
            raise SpecError(FIELD, f"{key} must be a text or a list of texts")
        for number, item in enumerate(value, start=1):
            if isinstance(item, str):
                continue
            lines = item.get("pip") if isinstance(item, dict) and list(item) == ["pip"] else None
            if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
                raise SpecError(
                    FIELD, f'{key}, item {number}: must be a text such as "numpy=2.1", or {{"pip": [...]}}'
                )
