"""A preview computes the demand, the placement and the plan once, whatever the nodes are and whoever shows
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.test import Client

from clusters.models import Cluster, Node
from jobs.scheduling.run_preview import Preview, preview
from tests.frameworks import ring
from tests.frameworks.registration import temporary_framework
from tests.jobs.builders import node, queued, snapshot
from tests.jobs.builders import spec as make_spec
from tests.people import client_of, make_contributor, principal_of
from tests.wizard import builders as wizard
from trainhub_launch.frameworks.framework import Framework
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.processes.environment import Ports
from trainhub_launch.scheduler.capacity import Demand
from trainhub_launch.scheduler.placement import Placement
from trainhub_launch.spec import RunSpec
from workspaces.access import Principal

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
RING = {"type": "ring", "member_count": 3}


@dataclass
class Counter:
    """The ring, which counts how often it is asked for a demand and for a plan."""

    demands: int = 0
    plans: int = 0

    def demand(self, spec: RunSpec) -> Demand:
        self.demands += 1
        return ring.FRAMEWORK.demand(spec)

    def plan(self, spec: RunSpec, placement: Placement, ports: Ports) -> LaunchPlan:
        self.plans += 1
        return ring.FRAMEWORK.planner(spec, placement, ports)

    @property
    def framework(self) -> Framework:
        return replace(ring.FRAMEWORK, demand=self.demand, planner=self.plan)


@pytest.fixture
def counter() -> Iterator[Counter]:
    counting = Counter()
    with temporary_framework(counting.framework):
        yield counting


@pytest.fixture
def who(db: None) -> Principal:
    return principal_of(make_contributor())


@pytest.fixture
def alpha(db: None) -> Node:
    return node("alpha", slots=8)


def of_ring(who: Principal, **changes: Any) -> Preview:
    return preview(make_spec(who, distribution=RING, **changes), who)


def test_on_a_ready_node(counter: Counter, who: Principal, alpha: Node) -> None:
    shown = of_ring(who)
    assert shown.errors == ()
    assert shown.plan is not None
    assert [process.env["RING_NEXT"] for process in shown.plan.processes] == ["1", "2", "0"]
    assert (counter.demands, counter.plans) == (1, 1)


def test_on_a_node_that_is_too_small(counter: Counter, who: Principal) -> None:
    node("alpha", slots=2)
    shown = of_ring(who)
    assert shown.plan is None
    assert [finding.field for finding in shown.errors] == ["distribution"]
    assert (counter.demands, counter.plans) == (1, 1)


def test_without_any_node(counter: Counter, who: Principal) -> None:
    Cluster.objects.create(name="local")
    shown = of_ring(who)
    assert shown.plan is not None
    assert [command.node for command in shown.plan.commands] == ["<node 0>"]
    assert (counter.demands, counter.plans) == (1, 1)


def test_with_wrong_variables_and_references(counter: Counter, who: Principal, alpha: Node) -> None:
    shown = of_ring(
        who, arguments=["$RING_SIZE", "$RING_SYZE"], environment_variables={"RING_RANK": "0", "MINE": "1"}
    )
    assert shown.plan is None
    assert {finding.field: finding.message.split(";")[0] for finding in shown.errors} == {
        "arguments[1]": "$RING_SYZE will not exist",
        "environment_variables.RING_RANK": "RING_RANK is set by TrainHub for each process of this run",
    }
    assert (counter.demands, counter.plans) == (1, 1)


def test_when_a_run_is_submitted(counter: Counter, who: Principal, alpha: Node) -> None:
    queued(who, distribution=RING)
    assert (counter.demands, counter.plans) == (1, 1)


def test_when_the_wizard_shows_it(counter: Counter, who: Principal, alpha: Node) -> None:
    draft = wizard.with_code(who)
    page = wizard.preview(browser(who), draft, "distribution", kind="ring", ring_member_count="4")
    assert page.count('name="chosen_rank"') == 4
    assert (counter.demands, counter.plans) == (1, 1)


def test_when_a_client_asks_for_it(counter: Counter, who: Principal, alpha: Node) -> None:
    source = {"type": "snapshot", "id": snapshot(who).sha256}
    spec = {"source": source, "script": "train.py", "distribution": RING}
    answer = browser(who).post("/api/v1/runs/preview/", spec, content_type="application/json")
    assert answer.status_code == 200, answer.content
    assert answer.json()["plan"]["framework"] == "ring"
    assert (counter.demands, counter.plans) == (1, 1)


def browser(who: Principal) -> Client:
    return client_of(who.user)
