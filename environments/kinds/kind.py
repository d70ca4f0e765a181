"""What every kind of environment can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

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
        """Returns the text of the lock. Runs in the worker. Raises Unresolvable, and NeedsNode if it is for a
        node to make it: then the kind is a Maker, too."""

    def locked_packages(self, lock: str) -> tuple[LockedPackage, ...]:
        """Returns the packages of a lock, by name."""

    def node_spec(self, version: EnvironmentVersion) -> EnvironmentSpec:
        """Returns a locked version as nodes get it, for no particular node: `python` is a version."""

    def version_files(self, version: EnvironmentVersion) -> Mapping[str, str]:
        """Returns the texts that people can download, by file name: the source and, once there is one, the
        lock."""


class Maker(Protocol):
    """A kind whose versions a node must make. `making_capability`: what that node must be able to do
    (`trainhub_launch.machine`)."""

    making_capability: str

    def has_file(self, version: EnvironmentVersion, sha256: str) -> bool:
        """Returns whether the version may use a file that the hub has stored before, so that the node need
        not upload it."""

    def earlier_result(self, version: EnvironmentVersion) -> str:
        """Returns the text of the lock if what nodes have made for other versions meanwhile is all that this
        one waits for, else ""."""

    def awaits_other(self, version: EnvironmentVersion) -> bool:
        """Returns whether a node makes the same for another version, whose result this one then uses."""

    def accept_result(
        self, version: EnvironmentVersion, result: Mapping[str, Any], files: Mapping[str, int]
    ) -> str:
        """Returns the text of the lock for what a node has made, and records the files that it consists of.
        `files`: the size of each file that the node has uploaded for this, by SHA-256; `result`: a JSON
        object of the node's, which is not to be trusted. Raises Unresolvable."""
