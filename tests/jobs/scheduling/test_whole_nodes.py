"""Runs that take all GPUs of each node, with the database: what is stored, who waits, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.models import Cluster, Lease
from jobs.models import Attempt, Run
from jobs.queues import standings
from jobs.quotas import quota_admin
from jobs.scheduling import run_actions
from jobs.scheduling.submission import SubmitRefused, clone_spec
from jobs.states import RunState
from tests.jobs.builders import launched, node, queued, spec
from tests.people import client_of
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
ALL: dict[str, Any] = {"resources": {"gpus_per_node": "all"}}
TWO_NODES: dict[str, Any] = {**ALL, "distribution": {"type": "pytorch", "node_count": 2}}


def told(run: Run) -> str:
    run.refresh_from_db()
    return run.sentence if run.state == RunState.QUEUED else run.state


def test_the_attempt_has_the_gpus_and_the_spec_says_all(who: Principal) -> None:
    node("alpha", gpus=4)
    node("beta", gpus=4)
    run = launched(who, **TWO_NODES)
    assert told(run) == RunState.PROVISIONING
    attempt = Attempt.objects.get(run=run)
    expected = {name: [f"GPU-{name}-{index}" for index in range(4)] for name in ("alpha", "beta")}
    assert {place["name"]: place["gpus"] for place in attempt.placement} == expected
    assert {lease.node.name: lease.gpus for lease in Lease.objects.all()} == expected
    assert run.spec["resources"]["gpus_per_node"] == "all"
    assert clone_spec(run).resources.all_gpus


def test_waits_until_a_node_is_whole_and_counts_with_its_gpus(who: Principal) -> None:
    node("alpha", gpus=4)
    small = launched(who, resources={"gpus_per_node": 1})
    run = launched(who, **ALL)
    assert told(run) == (
        "Waiting for 1 node with all 4 GPUs: alpha has 3 of 4 GPUs free; the other is held by run "
        f"{small.number}."
    )
    (waiting,) = standings.with_runs(standings.picture_of(Cluster.objects.get()).order)
    assert (waiting.needs.gpus, waiting.needs.slots) == (4, 0)
    page = client_of(who.user).get("/clusters/local/queue/").content.decode()
    assert "4 GPUs" in page
    run_actions.cancel(small, who.user)
    run_actions.launch_queued()
    assert told(run) == RunState.PROVISIONING


def test_is_refused_with_the_numbers(who: Principal) -> None:
    node("alpha", gpus=4)
    node("beta", gpus=2)
    with pytest.raises(
        SubmitRefused, match="1 node with 4 GPUs and 1 node with 2 GPUs; ask for at most 1 node"
    ):
        queued(who, **TWO_NODES)


def test_a_quota_counts_the_gpus_of_the_nodes(who: Principal) -> None:
    node("alpha", gpus=4)
    quota_admin.set_quota(who.workspace, "workspace", "", {"gpus": 3}, who.user)
    with pytest.raises(SubmitRefused, match="The run needs 4 GPUs, and the quota"):
        queued(who, **ALL)


def test_a_cluster_without_gpus_gives_slots_and_a_warning(who: Principal) -> None:
    node("alpha")
    submitted = run_actions.submit_with_findings(spec(who, **ALL), who)
    assert [item.level for item in submitted.findings if item.field == "resources.gpus_per_node"] == [
        "warning"
    ]
    run_actions.launch(submitted.run.pk)
    assert told(submitted.run) == RunState.PROVISIONING
    assert Lease.objects.get().slots == 1
