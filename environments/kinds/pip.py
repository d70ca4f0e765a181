"""Environments made from a requirements file: uv finds the versions, and nodes install wheels by their
hashes."""

from __future__ import annotations

from collections.abc import Mapping

from environments.lock_file import LockedPackage, pins_of, read_lock
from environments.models import EnvironmentVersion
from environments.requirement_list import FIELD, read_requirements
from environments.resolving.requirement_lock import lock_requirements
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.order import EnvironmentSpec

PYPI = "https://pypi.org/simple"


class PipKind:
    field = FIELD
    has_python = True
    capabilities: frozenset[str] = frozenset()

    def read_body(self, fields: Fields) -> str:
        lines = fields.raw(FIELD)
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise SpecError(FIELD, 'must be a list of lines, such as ["numpy==2.1.0", "pandas"]')
        return "\n".join(lines)

    def check(self, source: str) -> None:
        read_requirements(source)

    def named_packages(self, source: str) -> tuple[str, ...]:
        return read_requirements(source).requirements

    def make_lock(self, version: EnvironmentVersion) -> str:
        return lock_requirements(read_requirements(version.source), version.python)

    def locked_packages(self, lock: str) -> tuple[LockedPackage, ...]:
        return read_lock(lock)

    def node_spec(self, version: EnvironmentVersion) -> EnvironmentSpec:
        """`requirements` and `index_urls` are for agents that do not read locks."""
        source = read_requirements(version.source)
        extra = source.extra_index_urls
        # To an older agent the first is the main index: it has no way to name only further ones.
        main = (source.index_url,) if source.index_url else ()
        return EnvironmentSpec(
            name=version.environment.name,
            version=str(version.number),
            kind="venv",
            python=version.python,
            requirements=pins_of(version.lock),
            index_urls=(source.index_url or PYPI, *extra) if extra else main,
            lock=version.lock,
        )

    def version_files(self, version: EnvironmentVersion) -> Mapping[str, str]:
        lock = {"requirements.lock": version.lock} if version.lock else {}
        return {"requirements.txt": version.source} | lock
