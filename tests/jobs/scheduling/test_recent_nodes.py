"""Submissions that follow each other closely share what is read about the nodes, and lose nothing by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from clusters import node_facts
from clusters.models import Node
from jobs.models import AttemptNode, Run
from jobs.scheduling import run_actions
from jobs.states import RunState
from tests.jobs.builders import node, processes, queued, snapshot, spec
from workspaces import background_loop
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
LONG_S = 3600.0


@pytest.fixture(autouse=True)
def _nothing_read() -> Iterator[None]:
    node_facts._recent.clear()
    yield
    node_facts._recent.clear()


def _gpus(count: int) -> dict[str, Any]:
    return {"distribution": processes(count), "resources": {"gpus_per_node": count}}


def _launch(run: Run) -> list[str]:
    """Returns the nodes on which the run is placed."""
    run_actions.launch(run.pk, LONG_S)
    return [part.node.name for part in AttemptNode.objects.filter(attempt__run=run).select_related("node")]


def test_a_node_that_was_drained_meanwhile_gets_no_run(who: Principal) -> None:
    node("alpha", gpus=1)
    node("beta", gpus=2)
    assert _launch(queued(who, **_gpus(1))) == ["alpha"]
    Node.objects.filter(name="beta").update(drained_at=timezone.now())
    node("gamma", gpus=2)
    assert _launch(queued(who, **_gpus(2))) == ["gamma"]


def test_no_run_fails_because_its_node_has_just_joined(who: Principal) -> None:
    node("alpha", gpus=1)
    assert _launch(queued(who, **_gpus(1))) == ["alpha"]
    node("beta", gpus=4)
    run = queued(who, **_gpus(4))
    assert _launch(run) == ["beta"]
    assert Run.objects.get(pk=run.pk).state == RunState.PROVISIONING


def test_freed_resources_are_given_out_by_what_holds_now(who: Principal) -> None:
    node("alpha", gpus=1)
    assert _launch(queued(who, **_gpus(1))) == ["alpha"]
    waiting = queued(who, **_gpus(1))
    assert _launch(waiting) == []
    node("beta", gpus=1)
    run_actions.launch_queued()
    assert AttemptNode.objects.get(attempt__run=waiting).node.name == "beta"


def test_the_web_server_accepts_by_what_it_has_just_read_and_refuses_by_what_holds_now(
    who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_loop, "is_running", lambda: True)
    node("alpha", gpus=1)
    queued(who, **_gpus(1))
    # Within the second in which the reading serves other submissions.
    node("beta", gpus=4)
    assert run_actions.submit(spec(who, **_gpus(4)), who).state == RunState.QUEUED
    assert snapshot(who)
    with pytest.raises(run_actions.SubmitRefused, match="GPU"):
        run_actions.submit(spec(who, **_gpus(5)), who)
