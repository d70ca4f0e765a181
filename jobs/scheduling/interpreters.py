"""Checks that the nodes that a run would get have the Python it requests, and that their versions match."""

from __future__ import annotations

from collections.abc import Iterator

from jobs import environments
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.machine import Interpreter
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.scheduler.placement import Placement, Refusal
from trainhub_launch.spec import RunSpec


def check_interpreters(
    spec: RunSpec, placement: Placement | Refusal, nodes: tuple[FreeNode, ...]
) -> Iterator[Finding]:
    """Yields findings about the nodes of `placement`; checks the environment even if there are none yet."""
    reference = spec.environment
    if reference.name not in environments.environment_names():
        return
    names = [] if isinstance(placement, Refusal) else [node.name for node in placement.nodes]
    chosen = [node for name in names for node in nodes if node.name == name and not node.is_coming]
    versions: dict[str, str] = {}
    for node in chosen:
        try:
            environment = environments.resolve(reference, node.interpreters)
        except SpecError as error:
            # The sentence of `resolve` is written for one node; with several it must say which.
            message = (
                error.message if len(names) == 1 else error.message.replace("the chosen node", node.name)
            )
            yield Finding("error", error.field, message)
            return
        is_named = environment.name == environments.SYSTEM and environment.version
        versions[node.name] = environment.version if is_named else _default_version(node.interpreters)
    if not chosen and reference.name != environments.SYSTEM:
        yield from _unknown_version(spec)
    # Environments that are made on the node are made with its own Python.
    yield from _differing_versions(versions)


def _unknown_version(spec: RunSpec) -> Iterator[Finding]:
    try:
        environments.resolve(spec.environment, ())
    except SpecError as error:
        yield Finding("error", error.field, error.message)


def _default_version(interpreters: tuple[Interpreter, ...]) -> str:
    """Returns the default version of a node: that of the first interpreter it reports, or ""."""
    return interpreters[0].version if interpreters else ""


def _differing_versions(versions: dict[str, str]) -> Iterator[Finding]:
    # Compiled extensions and pickles hold within a minor version of Python.
    minors = {name: ".".join(version.split(".")[:2]) for name, version in versions.items() if version}
    if len(set(minors.values())) > 1:
        listing = ", ".join(f"{name} has {minor}" for name, minor in minors.items())
        yield Finding(
            "warning",
            "environment.version",
            f"the nodes would run different versions of Python: {listing}; name one that all "
            "of them have, or give the agents the same with TRAINHUB_NODE_PYTHON",
        )
