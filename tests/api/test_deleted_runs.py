"""GET /api/v1/runs/deleted/ answers for runs in every state in which a run can be deleted."""

from __future__ import annotations

import pytest
from django.test import Client

from clusters.models import Node
from jobs import causes
from jobs.models import Run
from jobs.scheduling import run_actions
from tests.api.asking import RUNS
from tests.jobs import builders
from tests.jobs.builders import Played, ended
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey", "node")


@pytest.fixture
def failed_run(who: Principal, node: Node) -> Run:
    run = builders.launched(who)
    played = Played(node)
    played.claim(run)
    played.tell(run, "done", ended(0, 1))
    causes.store_cause(run.pk, 1)
    run.refresh_from_db()
    assert run.state == "Failed"
    return run


def test_a_failed_run_is_listed_with_its_cause(api: Client, who: Principal, failed_run: Run) -> None:
    run_actions.delete(failed_run, who.user)
    answer = api.get(f"{RUNS}deleted/")
    assert answer.status_code == 200
    [row] = answer.json()["results"]
    assert row["state"] == "Failed"
    assert row["cause_line"]


def test_a_run_that_went_with_its_experiment_while_it_waited_is_listed(api: Client, who: Principal) -> None:
    run = builders.queued(who)
    Run.objects.filter(pk=run.pk).update(deleted_at=run.created_at)
    answer = api.get(f"{RUNS}deleted/")
    assert answer.status_code == 200
    assert [row["number"] for row in answer.json()["results"]] == [run.number]


def test_an_unknown_order_is_refused(api: Client) -> None:
    answer = api.get(f"{RUNS}deleted/?order=size")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "order"
