"""The packages of an environment, as a conda file lists them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.local_files.conda_yaml import parse_conda

_NAME = re.compile(r"\s*(?:[\w./-]+::)?([A-Za-z0-9][A-Za-z0-9._-]*)")
DEFAULT_CHANNELS = ("conda-forge",)


def package_name(line: str) -> str:
    """Returns the normalised name in a requirement or a conda specification, "" of an option."""
    match = None if line.lstrip().startswith("-") else _NAME.match(line)
    return re.sub(r"[-_.]+", "-", match.group(1)).lower() if match else ""


class CondaDependencies:
    """Conda packages and pip packages. The first argument is a conda file, or a file of requirements, which
    the SDK v1 does not take but scripts often give."""

    def __init__(self, conda_dependencies_file_path: Any = None, _underlying_structure: Any = None) -> None:
        self._channels: list[str] = []
        self._conda: list[str] = []
        self._pip: list[str] = []
        if conda_dependencies_file_path is not None:
            self._read(os.fspath(conda_dependencies_file_path))
        elif _underlying_structure:
            self._take(_underlying_structure)

    @staticmethod
    def create(
        pip_indexurl: str | None = None,
        pip_packages: Iterable[str] | None = None,
        conda_packages: Iterable[str] | None = None,
        python_version: Any = None,
        pin_sdk_version: bool = True,
        **_others: Any,
    ) -> CondaDependencies:
        dependencies = CondaDependencies()
        if python_version is not None:
            dependencies.set_python_version(str(python_version))
        if pip_indexurl:
            dependencies.set_pip_option(f"--index-url {pip_indexurl}")
        for package in conda_packages or ():
            dependencies.add_conda_package(package)
        for package in pip_packages or ():
            dependencies.add_pip_package(package)
        return dependencies

    @property
    def conda_packages(self) -> Iterator[str]:
        return iter(list(self._conda))

    @property
    def pip_packages(self) -> Iterator[str]:
        return (line for line in list(self._pip) if not line.startswith("-"))

    @property
    def pip_options(self) -> Iterator[str]:
        return (line for line in list(self._pip) if line.startswith("-"))

    @property
    def conda_channels(self) -> Iterator[str]:
        return iter(list(self._channels))

    def get_python_version(self) -> str | None:
        for line in self._conda:
            if package_name(line) == "python":
                return re.sub(r"^\s*python\s*[=<>! ]*", "", line).strip() or None
        return None

    def set_python_version(self, version: str) -> None:
        self._conda = [line for line in self._conda if package_name(line) != "python"]
        self._conda.insert(0, f"python={version}")

    def add_conda_package(self, conda_package: str) -> None:
        """Adds a package, in place of another specification of it."""
        name = package_name(conda_package)
        if not name:
            raise UserErrorException(f"add_conda_package: {conda_package!r} names no package.")
        self._conda = [line for line in self._conda if package_name(line) != name]
        self._conda.append(conda_package.strip())

    def add_pip_package(self, pip_package: str) -> None:
        line = pip_package.strip()
        name = package_name(line)
        self._pip = [other for other in self._pip if not name or package_name(other) != name]
        self._pip.append(line)

    def set_pip_option(self, pip_option: str) -> None:
        self._pip.insert(0, pip_option)

    def set_pip_index_url(self, index_url: str) -> None:
        self.set_pip_option(index_url if index_url.startswith("-") else f"--index-url {index_url}")

    def add_channel(self, channel: str) -> None:
        if channel not in self._channels:
            self._channels.append(channel)

    def remove_conda_package(self, conda_package: str) -> None:
        self._conda = [line for line in self._conda if package_name(line) != package_name(conda_package)]

    def remove_pip_package(self, pip_package: str) -> None:
        self._pip = [line for line in self._pip if package_name(line) != package_name(pip_package)]

    def remove_channel(self, channel: str) -> None:
        self._channels = [name for name in self._channels if name != channel]

    def as_dict(self) -> dict[str, Any]:
        dependencies: list[Any] = list(self._conda)
        if self._pip:
            dependencies.append({"pip": list(self._pip)})
        return {"channels": self._channels or list(DEFAULT_CHANNELS), "dependencies": dependencies}

    def serialize_to_string(self) -> str:
        """Returns a conda file."""
        lines = ["channels:", *(f"- {channel}" for channel in self._channels or DEFAULT_CHANNELS)]
        lines += ["dependencies:", *(f"- {_quoted(line)}" for line in self._conda)]
        if self._pip:
            lines += ["- pip:", *(f"  - {_quoted(line)}" for line in self._pip)]
        return "\n".join(lines) + "\n"

    def save_to_file(self, base_directory: Any, conda_file_path: Any = None) -> str:
        """Writes a conda file, by default `conda_dependencies.yml`. Returns its path."""
        path = os.path.join(os.fspath(base_directory), os.fspath(conda_file_path or "conda_dependencies.yml"))
        self.save(path)
        return path

    def save(self, path: Any = "conda_dependencies.yml") -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.serialize_to_string())

    def _read(self, path: str) -> None:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise UserErrorException(f"{path} cannot be read: {error.strerror}.") from error
        if "dependencies:" not in text:
            for line in requirement_lines(text):
                self.add_pip_package(line)
            return
        try:
            self._take(parse_conda(text))
        except ValueError as error:
            raise UserErrorException(f"{path} is no conda file: {error}.") from error

    def _take(self, data: Any) -> None:
        self._channels = [str(channel) for channel in data.get("channels") or ()]
        for item in data.get("dependencies") or ():
            if isinstance(item, dict):
                self._pip += [str(line).strip() for line in item.get("pip") or ()]
            else:
                self._conda.append(str(item).strip())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CondaDependencies) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]


def requirement_lines(text: str) -> list[str]:
    """Returns the lines of a file of requirements without comments."""
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _quoted(text: str) -> str:
    """Returns a scalar of YAML, in quotes where it would mean something else without."""
    is_plain = re.fullmatch(r"[\w./=][\w./=<>,;+~:@\[\]-]*", text) and not text.endswith(":")
    return text if is_plain and ": " not in text else "'" + text.replace("'", "''") + "'"
