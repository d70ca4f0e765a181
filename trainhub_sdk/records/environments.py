"""Environments and their versions. Written by packaging/make_sdk_records.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainhub_sdk.records.record import Record


@dataclass
class Environment(Record):
    name: str = ""
    version: str = ""
    kind: str = ""
    """pip: the workspace's own, built on the node from the lock of `requirements`. venv: curated, built
    on the node from `requirements`. system: an interpreter that is installed on the node."""
    requirements: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    """For system, the nodes that have this interpreter. For others, empty: they are built where they are
    used."""
    state: str = ""
    """Only of the workspace's own: resolving, locked or failed. A run that names no version gets the
    newest locked one."""
    notice: str = ""
    """That it is outdated, deprecated or has a successor, with what to do; empty if it is none."""
    package_count: int | None = None
    """The packages that are installed; null if not known."""
    download_bytes: int | None = None
    """What a node without any of them downloads; null if not known."""
    last_used_at: str | None = None
    """Only of the workspace's own: when a node last prepared it for a run; null if none has."""


@dataclass
class EnvironmentVersion(Record):
    name: str = ""
    version: str = ""
    """For the field `environment.version` of a spec."""
    kind: str = ""
    python: str = ""
    state: str = ""
    """resolving, which becomes locked or failed; or building in between, where a node must make it. Only
    a locked version can be used by a run."""
    failure: str = ""
    """Why it could not be resolved, or empty."""
    requirements: list[str] = field(default_factory=list)
    """The lines of requirements as they were given; empty for other sources."""
    image: str = ""
    """The reference of kind `image` as it was given; empty for others."""
    registry_secret: str = ""
    """The name of the secret with the registry's login, or empty."""
    source: str = ""
    """The text as it was given."""
    package_count: int | None = None
    """The packages of the lock; null if that is not known."""
    download_bytes: int | None = None
    """What a node without any of the packages downloads; null if that is not known."""
    outdated: str = ""
    """Why it should no longer be used, or empty."""
    successor: str = ""
    """What to use instead of an outdated version, or empty."""
    created_by: str | None = None
    created_at: str = ""
    resolved_at: str | None = None
    lock: str = ""
    """Every package with its version and hashes: of kind `pip` as pip reads them, of kind `conda` as
    JSON, of kinds `image` and `dockerfile` as JSON with digest, layers and variables; empty until it is
    locked."""
    waiting: str = ""
    """Why no node makes a version that is building, with the remedy; empty if one does."""
    hub_files: dict[str, Any] | None = None
    """What the hub has stored for nodes; null if it is not locked, or they get nothing there."""
    builds: list[dict[str, Any]] = field(default_factory=list)
    """The nodes that have it, or were ordered to build it."""
