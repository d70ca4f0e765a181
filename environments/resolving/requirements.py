"""Resolves requirements to a lock, with the indexes and secrets that they name."""

from __future__ import annotations

import tomllib
from collections.abc import Container, Mapping

from environments.errors import Unresolvable
from environments.indexes.index_address import IndexCredentials
from environments.indexes.index_policy import IndexRefused, check_index
from environments.indexes.index_secrets import SecretRefused, index_credentials, mask_credentials
from environments.indexes.index_settings import index_variables, merge_variables
from environments.lock_file import read_lock, restrict_hashes, with_sizes
from environments.models import EnvironmentVersion
from environments.packages.file_list import read_wheels, record_wheels
from environments.projects.pylock import lock_from_pylock
from environments.projects.source_text import PYLOCK
from environments.requirement_list import RequirementList
from environments.resolving.explanations import explain
from environments.resolving.uv_process import MAX_S, run_uv


def resolve_requirements(
    version: EnvironmentVersion,
    source: RequirementList,
    python: str = "",
    more: Mapping[str, str] | None = None,
    provided: Container[str] = (),
) -> str:
    """Returns the lock of the requirements for a minor version of Python, by default the version's. `more`:
    variables of uv that add to those of the hub's indexes. `provided`: packages that nodes do not install,
    by their normalised names. Raises Unresolvable."""
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
    resolution = run_uv(text, python, merge_variables(index_variables(source, credentials), more or {}))
    if resolution.is_timeout:
        raise Unresolvable(
            f"Resolving took more than {MAX_S} seconds. Pin versions, such as torch==2.13.0, or try again."
        )
    if not resolution.lock:
        message = mask_credentials(resolution.message, credentials.values())
        raise Unresolvable(explain(message, python, _secrets_by_url(source.credentials)))
    try:
        lock = restrict_hashes(resolution.lock, source.hashes)
    except KeyError as error:
        raise Unresolvable(
            f"None of the hashes that the requirements give for {error.args[0]} is that of a file on the "
            "index. Correct them, or remove them."
        ) from error
    if resolution.pylock:
        wheels = [wheel for wheel in read_wheels(resolution.pylock) if wheel.project not in provided]
        record_wheels(version, wheels, lock, python)
    lock = with_sizes(lock, _sizes(resolution.pylock, python))
    return "\n".join((*source.index_lines, mask_credentials(lock, credentials.values())))


def _sizes(pylock: str, python: str) -> dict[str, int]:
    """Returns the bytes of each package's file, by its name, as far as the index tells them."""
    if not pylock:
        return {}
    packages = read_lock(lock_from_pylock(tomllib.loads(pylock), python, PYLOCK))
    return {package.name: package.size for package in packages if package.size}


def _secrets_by_url(credentials: Mapping[str, IndexCredentials]) -> dict[str, str]:
    """Returns the names of the secrets for each address of an index, for messages."""
    return {url: " and ".join(sorted(item.secret_names)) for url, item in credentials.items()}
