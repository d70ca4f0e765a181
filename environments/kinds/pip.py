"""Environments made from a requirements file: uv finds the versions, and nodes install wheels by their
hashes."""

from __future__ import annotations

from collections.abc import Mapping

from environments.kinds.kind import Unresolvable
from environments.lock_file import LockedPackage, pins_of, read_lock, restrict_hashes
from environments.models import EnvironmentVersion
from environments.requirement_list import FIELD, read_requirements
from environments.resolving.explanations import explain
from environments.resolving.index_policy import IndexRefused, check_index
from environments.resolving.index_settings import index_variables
from environments.resolving.uv_process import MAX_S, run_uv
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields
from trainhub_launch.order import EnvironmentSpec

PYPI = "https://pypi.org/simple"


class PipKind:
    field = FIELD
    has_python = True

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
        source = read_requirements(version.source)
        try:
            for url in filter(None, (source.index_url, *source.extra_index_urls)):
                check_index(url)
        except IndexRefused as error:
            raise Unresolvable(f"{error}.") from error
        text = "\n".join((*source.requirements, ""))
        resolution = run_uv(text, version.python, index_variables(source))
        if resolution.is_timeout:
            raise Unresolvable(
                f"Resolving took more than {MAX_S} seconds. Pin versions, such as torch==2.13.0, or try "
                "again."
            )
        if not resolution.lock:
            raise Unresolvable(explain(resolution.message, version.python))
        try:
            lock = restrict_hashes(resolution.lock, source.hashes)
        except KeyError as error:
            raise Unresolvable(
                f"None of the hashes that the requirements give for {error.args[0]} is that of a file on the "
                "index. Correct them, or remove them."
            ) from error
        return "\n".join((*source.index_lines, lock))

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
