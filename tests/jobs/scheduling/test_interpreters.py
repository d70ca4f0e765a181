"""Whether the nodes that a run would get have its Python, and all the same."""

from __future__ import annotations

import pytest

from jobs.scheduling.interpreters import check_interpreters
from tests.launch.builders import make_node, make_spec, pytorch
from trainhub_launch.findings import Finding
from trainhub_launch.frameworks import demand
from trainhub_launch.machine import Interpreter
from trainhub_launch.scheduler.placement import FreeNode, provisional
from trainhub_launch.spec import EnvironmentRef
from workspaces.models import Workspace


def having(name: str, *versions: str) -> FreeNode:
    found = tuple(Interpreter(f"/opt/{version}/bin/python", version) for version in versions)
    return make_node(name, address=f"10.0.0.{ord(name)}", interpreters=found)


def said(environment: EnvironmentRef, *nodes: FreeNode) -> list[Finding]:
    spec = make_spec(pytorch(None, len(nodes) or 1, backend="gloo"), environment=environment)
    return list(check_interpreters(spec, provisional(demand(spec), nodes), nodes, Workspace()))


def test_the_same_everywhere_gives_nothing_to_say() -> None:
    assert said(EnvironmentRef(), having("a", "3.11.7"), having("b", "3.11.9")) == []


def test_one_that_a_node_lacks_names_the_node_and_what_it_has() -> None:
    (answer,) = said(EnvironmentRef("system", "3.12"), having("a", "3.12.1"), having("b", "3.11.7", "3.10.1"))
    assert (answer.level, answer.field) == ("error", "environment.version")
    assert (
        answer.message
        == "no Python '3.12' is on b; it has 3.11.7 (/opt/3.11.7/bin/python), 3.10.1 (/opt/3.10.1/bin/python)"
    )


@pytest.mark.django_db
def test_different_minor_versions_are_told_with_their_nodes() -> None:
    for reference in (EnvironmentRef(), EnvironmentRef("TrainHub-PyTorch-2.13")):
        (answer,) = said(reference, having("a", "3.12.1", "3.11.7"), having("b", "3.11.7"))
        assert (answer.level, answer.field) == ("warning", "environment.version")
        assert "a has 3.12, b has 3.11" in answer.message
    assert (
        said(EnvironmentRef("system", "3.11"), having("a", "3.12.1", "3.11.7"), having("b", "3.11.7")) == []
    )


def test_a_version_of_an_environment_is_judged_even_without_a_node() -> None:
    (answer,) = said(EnvironmentRef("TrainHub-PyTorch-2.13", "99"))
    assert answer.field == "environment.version"
