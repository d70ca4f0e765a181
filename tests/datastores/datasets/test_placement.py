"""Runs are placed by the data that they read: where it is, and where it fits."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Lease, Node
from clusters.node_reports import heartbeat
from datastores.models import Dataset
from datastores.run_inputs import version_download
from jobs.models import Run
from jobs.scheduling import run_actions
from jobs.scheduling.run_preview import preview
from jobs.states import RunState
from tests.datastores.datasets.builders import dataset, ready
from tests.datastores.test_datastores import able
from tests.jobs.builders import Played, beat, launched, queued, spec
from tests.people import (
    api_client,
    client_of,
    make_person,
    make_workspace,
)
from trainhub_launch.machine import DATASETS, DOWNLOADS, INPUTS, heartbeat_of
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def reads(version: int) -> dict[str, Any]:
    return {"birds": {"dataset": "birds", "version": version}}


def key(birds: Dataset, version: int) -> str:
    return version_download(birds.versions.get(number=version)).list_key


def machine(name: str, *, room: int = 0, keys: tuple[str, ...] = ()) -> Played:
    played = able(name, DOWNLOADS, DATASETS)
    message = replace(
        beat(name=name),
        capabilities=(INPUTS, DOWNLOADS, DATASETS),
        data_cache_bytes=room,
        data_lists=keys,
    )
    heartbeat.apply(played.node, message, timezone.now())
    return played


def nodes_of(run: Run) -> list[str]:
    return [placed["name"] for placed in run.attempts.get().placement]


class TestHeartbeats:
    def test_tell_what_a_node_has_and_how_much_fits(self) -> None:
        message = replace(beat(), data_cache_bytes=10**12, data_lists=("5f" * 8,))
        assert heartbeat_of(json.loads(json.dumps(asdict(message)))) == message
        row = machine("alpha", room=10**12, keys=("5f" * 8,)).node
        row.refresh_from_db()
        assert (row.data_cache_bytes, row.data_lists) == (10**12, ["5f" * 8])

    def test_of_older_agents_tell_neither(self) -> None:
        older = json.loads(json.dumps(asdict(beat())))
        del older["data_cache_bytes"], older["data_lists"]
        assert heartbeat_of(older) == beat()


class TestRuns:
    @pytest.mark.parametrize(("version", "name"), [(1, "alpha"), (2, "beta")])
    def test_go_where_their_data_is(self, who: Principal, birds: Dataset, version: int, name: str) -> None:
        machine("alpha", room=100, keys=(key(birds, 1),))
        machine("beta", room=100, keys=(key(birds, 2),))
        assert nodes_of(launched(who, inputs=reads(version))) == [name]

    def test_of_another_workspace_do_not_profit(self, who: Principal, birds: Dataset) -> None:
        other = make_workspace("vision")
        theirs = dataset(other)
        ready(theirs, "a.bin", "b.bin")
        assert theirs.versions.get().manifest.sha256 == birds.versions.get(number=1).manifest.sha256
        assert key(theirs, 1) != key(birds, 1)

    def test_whose_data_fits_on_no_node_are_refused_at_once(self, who: Principal, birds: Dataset) -> None:
        machine("alpha", room=12)
        answer = api_client(who.user).post(
            "/api/v1/runs/",
            {
                "source": {"type": "example", "name": "digits-single"},
                "script": "train.py",
                "inputs": reads(1),
                "resources": {"cluster": "local"},
            },
            "application/json",
        )
        assert answer.status_code == 400
        (error,) = answer.json()["errors"]
        assert error["field"] == "inputs"
        assert error["message"] == (
            "The data of the run has 20 B, and no node has so much room for data: alpha has 12 B; use fewer "
            "files, or ask its operator to raise TRAINHUB_NODE_DATA_CACHE_BYTES there, or to move "
            "TRAINHUB_NODE_CACHE to a larger disk."
        )
        assert not Run.objects.exists()

    def test_end_if_their_node_has_become_too_small(self, who: Principal, birds: Dataset) -> None:
        alpha = machine("alpha", room=100).node
        run = queued(who, inputs=reads(1))
        Node.objects.filter(pk=alpha.pk).update(data_cache_bytes=12)
        run_actions.launch(run.pk)
        run.refresh_from_db()
        assert run.state == RunState.FAILED
        assert "no node has so much room for data: alpha has 12 B" in run.facts["detail"]

    def test_wait_while_others_use_the_room(self, who: Principal, birds: Dataset) -> None:
        machine("alpha", room=30)
        first = launched(who, inputs=reads(1))
        assert Lease.objects.get().data == [[key(birds, 1), 20]]
        second = launched(who, inputs=reads(2))
        assert second.state == RunState.QUEUED
        assert (
            "alpha has room for 30 B of data, of which other runs use 20 B"
            in second.events.latest("pk").message
        )
        same = launched(who, inputs=reads(1))
        assert (same.state, nodes_of(same)) == (RunState.PROVISIONING, ["alpha"])
        for run in (first, same):
            run_actions.cancel(run, who.user)
        run_actions.launch(second.pk)
        assert nodes_of(second) == ["alpha"]


class TestPage:
    def test_of_a_version_names_the_nodes_that_have_it(self, who: Principal, birds: Dataset) -> None:
        machine("alpha", keys=(key(birds, 1),))
        hidden = machine("beta", keys=(key(birds, 1),)).node
        Node.objects.filter(pk=hidden.pk).update(removed_at=timezone.now())
        client = client_of(make_person("vera", Role.VIEWER))
        first = client.get("/data/sets/birds/1/").content.decode()
        assert "/nodes/alpha/" in first
        assert "/nodes/beta/" not in first
        assert "not downloaded yet" in client.get("/data/sets/birds/2/").content.decode()


class TestManySmallFiles:
    @pytest.mark.parametrize(
        ("files", "size", "has_hint"),
        [(100_000, 20_000, True), (99_999, 20_000, False), (100_000, 10**6, False)],
    )
    def test_are_told_before_the_launch(
        self, who: Principal, birds: Dataset, files: int, size: int, *, has_hint: bool
    ) -> None:
        birds.versions.filter(number=2).update(files=files, bytes=files * size)
        machine("alpha")
        findings = preview(spec(who, inputs=reads(2)), who).findings
        hints = [item.message for item in findings if item.field == "inputs.birds"]
        assert len(hints) == has_hint
        assert all("birds 2 has 100,000 files with 19.5 KiB on average" in hint for hint in hints)
