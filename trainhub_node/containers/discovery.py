"""Finds the container engine of this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from trainhub_node.containers.engine import NAMES, OFF, PROXIES, Engine
from trainhub_node.settings import NodeSettings

# Linked statically, so it runs in every image.
HOLDER = "catatonit"
HOLDER_FOLDERS = ("/usr/libexec/podman", "/usr/lib/podman", "/usr/libexec", "/usr/bin")
SYSTEM_FOLDERS = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
# What a call of the engine needs of the agent's environment: where it keeps things, and logins of registries.
VARIABLES = (
    "HOME",
    "LANG",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINERS_REGISTRIES_CONF",
    "REGISTRY_AUTH_FILE",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    *PROXIES,
)


def find_engine(settings: NodeSettings) -> Engine | None:
    """Returns the engine that runs in images use here, None if there is none or no holder."""
    engine = next(installed_engines(settings), None)
    holder = find_holder()
    if engine is None or holder is None:
        return None
    name, program = engine
    variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return Engine(name, program, holder, variables | {"PATH": search_path()}, agent_mark(settings))


def installed_engines(settings: NodeSettings) -> Iterator[tuple[str, str]]:
    """Yields name and program of each engine that is installed and wanted, the preferred one first."""
    if settings.engine == OFF:
        return
    for name in (settings.engine,) if settings.engine else NAMES:
        program = shutil.which(name, path=search_path())
        if program is not None:
            yield name, program


def find_holder() -> str | None:
    """Returns the program that keeps containers alive, or None."""
    folders = [*HOLDER_FOLDERS, *search_path().split(":")]
    paths = (Path(folder, HOLDER) for folder in folders)
    # Its own path, not that of a link: the engine mounts it.
    return next((str(path.resolve()) for path in paths if os.access(path, os.X_OK)), None)


def search_path() -> str:
    """Returns the agent's PATH and the folders of system programs, which services often lack."""
    return ":".join(filter(None, (os.environ.get("PATH", ""), SYSTEM_FOLDERS)))


def agent_mark(settings: NodeSettings) -> str:
    """Returns what this node's containers have in their names and no other agent's on this machine."""
    return hashlib.sha256(f"{settings.name} {settings.folder}".encode()).hexdigest()[:12]
