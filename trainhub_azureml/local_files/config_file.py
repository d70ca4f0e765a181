"""Where the files lie that scripts of the SDK v1 bring along: the workspace's `config.json`, and the mapping
file of this package."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from trainhub_azureml.exceptions import UserErrorException

FOLDERS = (".azureml", "", "aml_config")
NAME = "config.json"


class WorkspaceConfig(NamedTuple):
    subscription_id: str
    resource_group: str
    workspace_name: str


def places(name: str, start: str = "") -> Iterator[str]:
    """Yields where a file of this name may lie: in three folders of `start`, by default the current folder,
    and then of each folder above it."""
    folder = os.path.abspath(start or os.curdir)
    while True:
        for below in FOLDERS:
            yield os.path.join(folder, below, name)
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def find_config(path: str | os.PathLike[str] | None = None, file_name: str | None = None) -> str:
    """Returns the path of the workspace's file, "" if there is none. `path`: the file, or a folder in or
    above which it is. Raises UserErrorException for a path that does not exist."""
    start = os.fspath(path) if path is not None else ""
    if start and os.path.isfile(start):
        return start
    if start and not os.path.isdir(start):
        raise UserErrorException(f"Workspace.from_config: there is no {start}.")
    return next(filter(os.path.isfile, places(file_name or NAME, start)), "")


def read_config(file: str) -> WorkspaceConfig:
    """Returns the content of a file of either form. Raises UserErrorException."""
    try:
        with open(file, encoding="utf-8-sig") as stream:
            data = json.load(stream)
    except (OSError, ValueError) as error:
        raise UserErrorException(f"{file} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise UserErrorException(f"{file} must hold a JSON object.")
    if "Scope" in data:
        parts = str(data["Scope"]).strip("/").split("/")
        pairs = dict(zip((part.lower() for part in parts[::2]), parts[1::2]))
        subscription, group = pairs.get("subscriptions", ""), pairs.get("resourcegroups", "")
        return WorkspaceConfig(subscription, group, parts[-1])
    if not data.get("workspace_name"):
        raise UserErrorException(f"{file} names no workspace: it needs workspace_name, or Scope.")
    values = (data.get(name) for name in WorkspaceConfig._fields)
    return WorkspaceConfig(*("" if value is None else str(value) for value in values))


def write_config(config: WorkspaceConfig, folder: str, file_name: str) -> str:
    """Returns the path of the file."""
    target = os.path.join(folder, FOLDERS[0])
    os.makedirs(target, exist_ok=True)
    file = os.path.join(target, file_name)
    with open(file, "w", encoding="utf-8") as stream:
        json.dump(config._asdict(), stream, indent=4)
    return file
