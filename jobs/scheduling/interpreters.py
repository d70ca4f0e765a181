"""Whether the nodes that a run would get have the Python that it asks for, and all the same."""

from __future__ import annotations

from collections.abc import Iterator

from jobs import environments
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.machine import Interpreter
from trainhub_launch.offers import FreeNode
from trainhub_launch.placement import Placement, Refusal
from trainhub_launch.spec import RunSpec


def interpreters(
    spec: RunSpec, placement: Placement | Refusal, nodes: tuple[FreeNode, ...]
) -> Iterator[Finding]:
    """About the nodes of `placement`; the environment's name and version are judged even while there are
    none."""
    reference = spec.environment
    if reference.name not in environments.names():
        return
    names = [] if isinstance(placement, Refusal) else [node.name for node in placement.nodes]
    chosen = [node for name in names for node in nodes if node.name == name and not node.is_coming]
    versions: dict[str, str] = {}
    for node in chosen:
        try:
            found = environments.resolve(reference, node.interpreters)
        except SpecError as error:
            message = (
                error.message if len(names) == 1 else error.message.replace("the chosen node", node.name)
            )
            yield Finding("error", error.field, message)
            return
        is_named = found.name == environments.SYSTEM and found.version
        versions[node.name] = found.version if is_named else _own(node.interpreters)
    if not chosen and reference.name != environments.SYSTEM:
        yield from _unknown_version(spec)
    # Environments that are made on the node are made with its own Python.
    yield from _differing(versions)


def _unknown_version(spec: RunSpec) -> Iterator[Finding]:
    try:
        environments.resolve(spec.environment, ())
    except SpecError as error:
        yield Finding("error", error.field, error.message)


def _own(found: tuple[Interpreter, ...]) -> str:
    """The version that a node starts where nothing is said: of the first interpreter that it reports."""
    return found[0].version if found else ""


def _differing(versions: dict[str, str]) -> Iterator[Finding]:
    minors = {name: ".".join(version.split(".")[:2]) for name, version in versions.items() if version}
    if len(set(minors.values())) > 1:
        told = ", ".join(f"{name} has {minor}" for name, minor in minors.items())
        yield Finding(
            "warning",
            "environment.version",
            f"the nodes would run different versions of Python: {told}; name one that all "
            "of them have, or give the agents the same with TRAINHUB_NODE_PYTHON",
        )
