"""Runs that go on with files that are not those of their version any more, because they say so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datastores.models import Dataset
from jobs.models import DatasetUse
from jobs.scheduling.submission import clone_spec
from registry import registration
from tests.datastores.test_datastores import able
from tests.jobs.builders import launched
from tests.people import client_of
from tests.registry.builders import add_output
from tracking.dataset_inputs import CHANGED, CHANGED_WORDS, CONTEXT
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import CHANGED_DATA, DATASETS, DOWNLOADS
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
BIRDS: dict[str, Any] = {"birds": {"dataset": "birds"}}
USE: dict[str, Any] = {"birds": {"dataset": "birds", "if_changed": "use"}}


def test_are_used_only_where_the_run_says_so(who: Principal, birds: Dataset) -> None:
    alpha = able("alpha", DOWNLOADS, DATASETS, CHANGED_DATA)
    run = launched(who, inputs=USE)
    assert alpha.claim(run).downloads["birds"].uses_changed
    other = launched(who, inputs=BIRDS)
    assert not alpha.claim(other).downloads["birds"].uses_changed
    assert clone_spec(run).inputs["birds"].uses_changed


def test_need_a_node_that_can(who: Principal, birds: Dataset) -> None:
    able("alpha", DOWNLOADS, DATASETS)
    run = launched(who, inputs=USE)
    message = run.events.latest("pk").message
    assert "alpha does not go on with files that were changed: upgrade its agent" in message


@pytest.mark.parametrize(
    ("field", "changed", "words"),
    [
        ("if_changed", {"if_changed": "skip"}, "'skip' is no if_changed; use 'fail' or 'use'"),
        ("if_changed", {"datastore": "bucket", "dataset": ""}, "only a dataset can have changed files"),
        ("if_changed", {"mode": "reference"}, "cannot be chosen with mode 'reference'"),
    ],
)
def test_are_refused_where_they_make_no_sense(
    who: Principal, birds: Dataset, field: str, changed: dict[str, str], words: str
) -> None:
    with pytest.raises(SpecError) as raised:
        launched(who, inputs={"birds": {**USE["birds"], **changed}})
    assert raised.value.field == f"inputs.birds.{field}"
    assert words in raised.value.message


def test_are_told_by_the_run_and_its_lineage(who: Principal, birds: Dataset) -> None:
    alpha = able("alpha", DOWNLOADS, DATASETS, CHANGED_DATA)
    run = launched(who, inputs=USE)
    exact = launched(who, inputs={"first": {"dataset": "birds", "version": 1, "if_changed": "use"}})
    alpha.claim(run)
    alpha.tell(run, "preparing", warnings=("One file was changed.",), changed_inputs=("birds", "other"))
    assert not DatasetUse.objects.get(run=run).is_exact
    assert DatasetUse.objects.get(run=exact).is_exact
    client, words = client_of(who.user), "with files that were changed or gone"
    assert "One file was changed." in client.get(f"/runs/{run.number}/").content.decode()
    for path, is_told in {
        f"/runs/{run.number}/overview/": True,
        f"/runs/{exact.number}/overview/": False,
        "/data/sets/birds/2/": True,
        "/data/sets/birds/1/": False,
    }.items():
        assert (words in client.get(path).content.decode()) == is_told, path
    run.refresh_from_db()
    add_output(run, "model.pt", attempt=run.attempt)
    version = registration.register(who.workspace, "classifier", run, "model.pt", who.user)
    (data,) = json.loads(version.certificate)["origin"]["run"]["inputs"]
    assert data["tags"] == {CONTEXT: "birds", CHANGED: CHANGED_WORDS}
    assert words in client.get("/models/classifier/versions/1/").content.decode()
