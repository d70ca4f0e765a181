"""Checks that the nodes that a run would get have the Python it requests, and that their versions match."""

from __future__ import annotations

from collections.abc import Iterator

from environments import catalog
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.machine import Interpreter
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.scheduler.placement import Placement, Refusal
from trainhub_launch.spec import RunSpec
from workspaces.models import Workspace


def check_interpreters(
    spec: RunSpec, placement: Placement | Refusal, nodes: tuple[FreeNode, ...], workspace: Workspace
) -> Iterator[Finding]:
    """Yields findings about the nodes of `placement`; checks the environment even if there are none yet."""
    try:
        environment = catalog.find(spec.environment, workspace)
    except SpecError as error:
        # A name that does not exist is reported with everything else that the spec names wrongly.
        if error.field != "environment.name":
            yield Finding("error", error.field, error.message)
        return
    names = [] if isinstance(placement, Refusal) else [node.name for node in placement.nodes]
    chosen = [node for name in names for node in nodes if node.name == name and not node.is_coming]
    if environment.kind == "conda":
        return  # it brings its own Python
    versions: dict[str, str] = {}
    for node in chosen:
        try:
            resolved = catalog.on_node(environment, node.interpreters)
        except SpecError as error:
            # The sentence of `resolve` is written for one node; with several it must say which.
            message = (
                error.message if len(names) == 1 else error.message.replace("the chosen node", node.name)
            )
            yield Finding("error", error.field, message)
            return
        versions[node.name] = _version_of(resolved, node.interpreters)
    # Curated environments that are made on the node are made with its own Python.
    yield from _differing_versions(versions)


def _version_of(environment: EnvironmentSpec, interpreters: tuple[Interpreter, ...]) -> str:
    """Returns the version of Python that the environment, resolved for a node, uses there, or "" if that is
    not known: that of its path, else of the first interpreter that the node reports."""
    named = [item.version for item in interpreters if item.path == environment.python]
    return next(iter((*named, *(item.version for item in interpreters))), "")


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
