"""Runs in images are placed only on nodes that have a container engine."""

from __future__ import annotations

import pytest

from clusters.models import Node
from environments.models import EnvironmentVersion
from jobs.scheduling import run_actions, run_preview
from jobs.states import RunState
from tests.environments.locks import locked
from tests.jobs.builders import node, queued, spec
from trainhub_launch.order import IMAGE
from trainhub_node.supervisor import gang
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")


def test_waits_for_a_node_with_an_engine_and_says_what_to_install(who: Principal) -> None:
    alpha = node()
    locked(who)
    run = queued(who, environment={"name": "mine"})
    EnvironmentVersion.objects.update(kind=IMAGE)

    run_actions.launch(run.pk)

    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    assert "alpha has no containers: install podman and catatonit there" in run.events.latest("pk").message

    Node.objects.filter(pk=alpha.pk).update(capabilities="secrets disk containers")
    run_actions.launch(run.pk)

    run.refresh_from_db()
    assert run.state == RunState.PROVISIONING


def test_the_preview_says_so_before_the_launch(who: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    node()
    locked(who)
    of_run = spec(who, environment={"name": "mine"})
    # What the image itself needs is checked by its kind.
    monkeypatch.setattr(run_preview, "check_interpreters", lambda *_: ())
    EnvironmentVersion.objects.update(kind=IMAGE)

    findings = run_preview.preview(of_run, who).findings

    assert any("alpha has no containers: install podman" in finding.message for finding in findings)


def test_hub_and_node_mean_the_same_kind() -> None:
    assert gang.IMAGE == IMAGE
