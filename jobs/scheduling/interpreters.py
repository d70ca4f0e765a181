"""Checks that the nodes that a run would get have the Python it requests, and that their versions match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from environments import catalog
from environments.catalog import PythonLookup, with_version
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.findings.image import image_findings
from trainhub_launch.frameworks import demand
from trainhub_launch.machine import Interpreter
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.scheduler.capacity import FreeNode
from trainhub_launch.scheduler.placement import Placement, Refusal
from trainhub_launch.scheduler.whole_nodes import with_all_gpus
from trainhub_launch.spec import RunSpec
from workspaces.models import Workspace


def nodes_python(spec: RunSpec, nodes: tuple[FreeNode, ...], workspace: Workspace) -> str:
    """Returns the Python that the run's nodes must have, if there are as many of them as it needs; "" if it
    may have any, or if there are too few, which `check_interpreters` then reports for the nodes without."""
    python = PythonLookup().python_of(with_version(spec, workspace).environment, workspace.pk)
    if not python:
        return ""
    needs = with_all_gpus(replace(demand(spec), python=python), nodes)
    able = sum(node.can_ever(needs) and node.has_python(needs) for node in nodes)
    return python if able >= needs.nodes else ""


def check_interpreters(
    spec: RunSpec, placement: Placement | Refusal, nodes: tuple[FreeNode, ...], workspace: Workspace
) -> Iterator[Finding]:
    """Yields findings about the environment and the nodes of `placement`, also if there are none yet."""
    try:
        environment = catalog.find(spec.environment, workspace)
    except SpecError as error:
        # A name that does not exist is reported with everything else that the spec names wrongly.
        if error.field != "environment.name":
            yield Finding("error", error.field, error.message)
        return
    yield from image_findings(spec, environment)
    if environment.image:
        # It brings its own Python.
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
