"""What every kind of environment can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from environments.lock_file import LockedPackage
from environments.models import EnvironmentVersion
from trainhub_launch.fields import Fields
from trainhub_launch.order import EnvironmentSpec


class Kind(Protocol):
    """`field`: the field of requests to the API that holds the source, which errors name; `has_python`:
    whether people choose a version of Python, because the source does not bring its own; `capabilities`:
    those that nodes must have (`trainhub_launch.machine`)."""

    field: str
    has_python: bool
    capabilities: frozenset[str]

    def read_body(self, fields: Fields) -> str:
        """Returns the source that the body of a request holds. Raises SpecError."""

    def check(self, source: str) -> None:
        """Raises SpecError with the line and the remedy if no version can be made from the source."""

    def named_packages(self, source: str) -> tuple[str, ...]:
        """Returns what the source asks for, as lists and the search show it."""

    def make_lock(self, version: EnvironmentVersion) -> str:
        """Returns the text of the lock. Runs in the worker. Raises Unresolvable."""

    def locked_packages(self, lock: str) -> tuple[LockedPackage, ...]:
        """Returns the packages of a lock, by name."""

    def node_spec(self, version: EnvironmentVersion) -> EnvironmentSpec:
        """Returns a locked version as nodes get it, for no particular node: `python` is a version."""

    def version_files(self, version: EnvironmentVersion) -> Mapping[str, str]:
        """Returns the texts that people can download, by file name: the source and, once there is one, the
        lock."""
