"""Locks a list of requirements with uv."""

from __future__ import annotations

from collections.abc import Mapping

from environments.lock_file import restrict_hashes
from environments.requirement_list import RequirementList
from environments.resolving.explanations import explain
from environments.resolving.index_policy import IndexRefused, check_index
from environments.resolving.index_settings import index_variables, merge_variables
from environments.resolving.unresolvable import Unresolvable
from environments.resolving.uv_process import MAX_S, run_uv


def lock_requirements(source: RequirementList, python: str, more: Mapping[str, str] | None = None) -> str:
    """Returns the lock of the requirements for a minor version of Python. `more`: variables of uv that add to
    those of the hub's indexes. Raises Unresolvable."""
    try:
        for url in filter(None, (source.index_url, *source.extra_index_urls)):
            check_index(url)
    except IndexRefused as error:
        raise Unresolvable(f"{error}.") from error
    text = "\n".join((*source.requirements, ""))
    resolution = run_uv(text, python, merge_variables(index_variables(source), more or {}))
    if resolution.is_timeout:
        raise Unresolvable(
            f"Resolving took more than {MAX_S} seconds. Pin versions, such as torch==2.13.0, or try again."
        )
    if not resolution.lock:
        raise Unresolvable(explain(resolution.message, python))
    try:
        lock = restrict_hashes(resolution.lock, source.hashes)
    except KeyError as error:
        raise Unresolvable(
            f"None of the hashes that the requirements give for {error.args[0]} is that of a file on the "
            "index. Correct them, or remove them."
        ) from error
    return "\n".join((*source.index_lines, lock))
