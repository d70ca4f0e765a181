"""Environments made from a requirements file or a project: uv finds the versions, unless a lock is given, and
nodes install wheels by their hashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from environments.curated_versions import lock_curated
from environments.lock_file import LockedPackage, pins_of, read_lock
from environments.models import EnvironmentVersion
from environments.projects.pip_source import project_requirements, source_requirements
from environments.projects.source_text import (
    UV_LOCK,
    is_project,
    join_project,
    parse_toml,
    split_project,
)
from environments.requirement_list import FIELD, read_requirements
from environments.resolving.project_lock import lock_project
from environments.source_builds.wheel_maker import (
    has_built_wheel,
    is_built_for_other,
    lock_built_wheels,
    lock_earlier_wheels,
    lock_requirements,
)
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.machine import WHEEL_BUILDS
from trainhub_launch.order import EnvironmentSpec

PYPI = "https://pypi.org/simple"


class PipKind:
    field = FIELD
    has_python = True
    capabilities: frozenset[str] = frozenset()
    making_capability = WHEEL_BUILDS

    def read_body(self, fields: Fields) -> str:
        lines = fields.raw(FIELD)
        pyproject, uv_lock, pylock = (_file(fields, name) for name in ("pyproject", "uv_lock", "pylock"))
        if uv_lock and not pyproject:
            raise SpecError(
                "uv_lock", "needs the pyproject.toml that it was made from, in the field pyproject"
            )
        given = [source for source in (lines, pyproject, pylock) if source]
        if len(given) > 1:
            raise SpecError(FIELD, "give either requirements, pyproject (with uv_lock) or pylock")
        if pyproject:
            return join_project(pyproject, uv_lock)
        if pylock:
            return pylock
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise SpecError(FIELD, 'must be a list of lines, such as ["numpy==2.1.0", "pandas"]')
        return "\n".join(lines)

    def check(self, source: str) -> None:
        if is_project(source):
            project = split_project(source)
            parse_toml(project.uv_lock, UV_LOCK)
            project_requirements(project)
        else:
            read_requirements(source)

    def named_packages(self, source: str) -> tuple[str, ...]:
        return source_requirements(source).requirements

    def make_lock(self, version: EnvironmentVersion) -> str:
        if is_project(version.source):
            return lock_project(version, split_project(version.source), lock_requirements)
        requirements = read_requirements(version.source)
        if version.environment.workspace_id is None:
            return lock_curated(version, requirements)
        return lock_requirements(version, requirements)

    def has_file(self, version: EnvironmentVersion, sha256: str) -> bool:
        return has_built_wheel(version, sha256)

    def earlier_result(self, version: EnvironmentVersion) -> str:
        return lock_earlier_wheels(version)

    def awaits_other(self, version: EnvironmentVersion) -> bool:
        return is_built_for_other(version)

    def accept_result(
        self, version: EnvironmentVersion, result: Mapping[str, Any], files: Mapping[str, int]
    ) -> str:
        return lock_built_wheels(version, result, files)

    def locked_packages(self, lock: str) -> tuple[LockedPackage, ...]:
        return read_lock(lock)

    def node_spec(self, version: EnvironmentVersion) -> EnvironmentSpec:
        """`requirements` and `index_urls` are for agents that do not read locks."""
        source = source_requirements(version.source)
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
        if is_project(version.source):
            return split_project(version.source).files | lock
        return {"requirements.txt": version.source} | lock


def _file(fields: Fields, name: str) -> str:
    """Returns the text of a file in the body of a request; "" if there is none."""
    text = fields.raw(name, "")
    if not isinstance(text, str) or "\x00" in text:
        raise SpecError(name, "must be the text of the file")
    return text
