"""Resolves requirements to a lock, with the indexes and secrets that they name."""

from __future__ import annotations

import tomllib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from environments.errors import Unresolvable
from environments.indexes.index_address import IndexCredentials
from environments.indexes.index_policy import IndexRefused, check_index
from environments.indexes.index_secrets import SecretRefused, index_credentials, mask_credentials
from environments.indexes.index_settings import index_variables, merge_variables
from environments.lock_file import read_lock, restrict_hashes, with_sizes, without_packages
from environments.models import EnvironmentVersion
from environments.packages.file_list import read_wheels, record_wheels
from environments.projects.pylock import lock_from_pylock
from environments.projects.source_text import PYLOCK
from environments.requirement_list import RequirementList
from environments.resolving.explanations import explain
from environments.resolving.uv_process import MAX_S, Resolution, SourcePackage, run_uv


@dataclass(frozen=True)
class ResolvedRequirements:
    """`lock`: as nodes install it, without the packages that are locked as source. `pylock`: all packages as
    pylock.toml; "" if uv could not write it."""

    lock: str
    pylock: str


def resolve_requirements(
    version: EnvironmentVersion,
    source: RequirementList,
    python: str = "",
    more: Mapping[str, str] | None = None,
    provided: Container[str] = (),
) -> str:
    """Returns the lock of the requirements for a minor version of Python, by default the version's, whose
    files it records. `more`: variables of uv that add to those of the hub's indexes. `provided`: packages
    that nodes do not install, by their normalised names. Raises Unresolvable."""
    resolved = resolve_with_sources(version, source, (), python, more)
    if resolved.pylock:
        wheels = [wheel for wheel in read_wheels(resolved.pylock) if wheel.project not in provided]
        record_wheels(version, wheels, resolved.lock, python or version.python)
    return resolved.lock


def resolve_with_sources(
    version: EnvironmentVersion,
    source: RequirementList,
    packages: Sequence[SourcePackage],
    python: str = "",
    more: Mapping[str, str] | None = None,
) -> ResolvedRequirements:
    """Returns the lock of the requirements, of which `packages` are taken as source, and records no files.
    Raises Unresolvable."""
    python = python or version.python
    try:
        for url in filter(None, (source.index_url, *source.extra_index_urls)):
            check_index(url)
    except IndexRefused as error:
        raise Unresolvable(f"{error}.") from error
    try:
        credentials = index_credentials(version, source.credentials)
    except SecretRefused as error:
        raise Unresolvable(str(error)) from error
    text = "\n".join((*source.requirements, ""))
    variables = merge_variables(index_variables(source, credentials), more or {})
    resolution = run_uv(text, python, variables, packages)
    names = frozenset(package.name for package in packages)
    if not resolution.lock:
        raise _failure(resolution, source, python, credentials.values())
    lock = _without_other_hashes(without_packages(resolution.lock, names), source.hashes)
    lock = with_sizes(lock, _sizes(resolution.pylock, python, names))
    text = "\n".join((*source.index_lines, mask_credentials(lock, credentials.values())))
    return ResolvedRequirements(text, resolution.pylock)


def _failure(
    resolution: Resolution, source: RequirementList, python: str, credentials: Iterable[IndexCredentials]
) -> Unresolvable:
    if resolution.is_timeout:
        return Unresolvable(
            f"Resolving took more than {MAX_S} seconds. Pin versions, such as torch==2.13.0, or try again."
        )
    message = mask_credentials(resolution.message, credentials)
    return Unresolvable(explain(message, python, _secrets_by_url(source.credentials)))


def _without_other_hashes(lock: str, allowed: Mapping[str, frozenset[str]]) -> str:
    try:
        return restrict_hashes(lock, allowed)
    except KeyError as error:
        raise Unresolvable(
            f"None of the hashes that the requirements give for {error.args[0]} is that of a file on the "
            "index. Correct them, or remove them."
        ) from error


def _sizes(pylock: str, python: str, excluded: frozenset[str]) -> dict[str, int]:
    """Returns the bytes of each package's file, by its name, as far as the index tells them."""
    data = tomllib.loads(pylock)
    data["packages"] = [item for item in data.get("packages", ()) if item["name"] not in excluded]
    if not data["packages"]:
        return {}
    packages = read_lock(lock_from_pylock(data, python, PYLOCK))
    return {package.name: package.size for package in packages if package.size}


def _secrets_by_url(credentials: Mapping[str, IndexCredentials]) -> dict[str, str]:
    """Returns the names of the secrets for each address of an index, for messages."""
    return {url: " and ".join(sorted(item.secret_names)) for url, item in credentials.items()}
