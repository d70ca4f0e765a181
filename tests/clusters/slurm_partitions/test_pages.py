"""The pages of a cluster that is a partition of a Slurm, while Slurm does not answer or says little."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from clusters.allocations import snapshots
from clusters.allocations.snapshots import SlurmSnapshot
from clusters.backends.slurm.job_status import JobStatus
from clusters.backends.slurm.nodes import SlurmNode
from clusters.backends.slurm.states import STATES
from clusters.models import Cluster, SlurmPartition, UnixAccount
from clusters.slurm_partitions.forms import slurm_time
from tests.clusters.slurm_partitions.builders import make_allocation, make_partition
from tests.jobs.builders import queued
from tests.people import (
    client_of,
    make_contributor,
    make_operator,
    make_owner,
    make_viewer,
    make_workspace,
    principal_of,
)

pytestmark = pytest.mark.django_db
FORM = {
    "name": "hpc",
    "kind": "slurm",
    "slurm-partition": "main",
    "slurm-default_time_s": "1:00:00",
    "slurm-max_time_s": "7-00:00:00",
    "slurm-gres": "gpu",
    "slurm-python": "python3",
}
AWAY = "Slurm&#x27;s controller (slurmctld) or its database"


def text_of(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def node(name: str, *states: str, reason: str = "", **values: Any) -> SlurmNode:
    numbers = {"cpus": 8, "cpus_allocated": 2, "memory_mb": 4096, "memory_allocated_mb": 1024}
    gpus = {"gpus": {"a100": 4}, "gpus_allocated": {"a100": 1}}
    return SlurmNode(
        name, states, ("main",), **{**numbers, **gpus, **values}, reason=reason, reason_by="root"
    )


def job(job_id: int, word: str, user: str, *nodes: str, gpus: int = 0) -> JobStatus:
    return JobStatus(job_id, STATES[word], "", nodes, gpus, user, "main", None, None, None)


def say(cluster: Cluster, snapshot: SlurmSnapshot) -> None:
    """Lets this be what Slurm has just said."""
    slot = snapshots._slots.setdefault((cluster.pk, "main"), snapshots._Slot())
    slot.snapshot, slot.expires_at = snapshot, float("inf")


class TestAddForm:
    def test_offers_both_kinds(self) -> None:
        page = text_of(client_of(make_operator()), "/clusters/add-cluster/")
        assert 'value="agent"' in page
        assert 'name="slurm-partition"' in page

    def test_makes_a_partition(self) -> None:
        answer = client_of(make_operator()).post("/clusters/add-cluster/", FORM, follow=True)
        assert "The cluster hpc was created." in answer.content.decode()
        row = SlurmPartition.objects.get(cluster__name="hpc")
        assert (row.partition, row.max_time_s, row.gres) == ("main", 7 * 86400, {"": "gpu"})

    def test_what_the_hidden_fields_hold_does_not_count(self) -> None:
        hidden = {"min_nodes": "-4", "max_nodes": "", "node_gpus": "x", "provider": "nowhere"}
        client_of(make_operator()).post("/clusters/add-cluster/", {**FORM, **hidden})
        assert Cluster.objects.get(name="hpc").max_nodes == 0

    @pytest.mark.parametrize(
        ("field", "value", "words"),
        [
            ("slurm-partition", "", "This field is required"),
            ("slurm-partition", "a b", "Enter the name of a partition"),
            ("slurm-max_time_s", "a week", "Enter a time as Slurm writes it"),
            ("slurm-default_time_s", "8-00:00:00", "Choose a default time"),
            ("slurm-gres", "tape!", "must be like gpu or gpu:a100"),
            ("slurm-python", "-c", "Enter a command such as python3"),
            ("name", "a/b", "is not a usable name"),
        ],
    )
    def test_an_error_stands_beside_its_field(self, field: str, value: str, words: str) -> None:
        answer = client_of(make_operator()).post("/clusters/add-cluster/", {**FORM, field: value})
        page = answer.content.decode()
        assert answer.status_code == 400
        assert page.index(f'name="{field}"') < page.index(words)
        assert not Cluster.objects.filter(kind="slurm").exists()


class TestSettingsPage:
    def test_shows_and_changes_them(self) -> None:
        make_partition(gres={"": "gpu", "A100": "gpu:a100"})
        client = client_of(make_operator())
        page = text_of(client, "/clusters/hpc/edit/")
        assert 'value="7-00:00:00"' in page
        assert 'name="min_nodes"' not in page
        answer = client.post("/clusters/hpc/edit/", {**FORM, "slurm-qos": "long", "slurm-gres": "gpu:h100"})
        assert answer.status_code == 302
        row = SlurmPartition.objects.get()
        assert (row.qos, row.gres) == ("long", {"": "gpu:h100", "A100": "gpu:a100"})
        refused = client.post("/clusters/hpc/edit/", {**FORM, "slurm-qos": "a b"})
        assert (refused.status_code, "Only letters" in refused.content.decode()) == (400, True)

    def test_tests_them_with_and_without_javascript(self) -> None:
        make_partition()
        client = client_of(make_operator())
        part = client.post("/clusters/hpc/test/", headers={"HX-Request": "true"}).content.decode()
        assert (AWAY in part, "<html" in part) == (True, False)
        whole = client.post("/clusters/hpc/test/").content.decode()
        assert (AWAY in whole, "Nobody has a Unix account" in whole, "<html" in whole) == (True, True, True)

    def test_enters_and_removes_accounts(self) -> None:
        make_partition()
        make_contributor()
        client = client_of(make_operator())
        address = "/clusters/hpc/unix-accounts/"
        added = client.post(address, {"person": "carl", "account": "ada"}, follow=True).content.decode()
        assert "Runs of carl are jobs of ada from now on." in added
        assert "Remove the account of carl" in added
        for values, words in (
            ({"person": "zoe", "account": "ada"}, "there is no person &#x27;zoe&#x27;"),
            ({"person": "carl", "account": "root"}, "jobs never run as root"),
        ):
            refused = client.post(address, values)
            assert (refused.status_code, words in refused.content.decode()) == (400, True)
        removed = client.post(f"{address}remove/", {"person": "carl"}, follow=True).content.decode()
        assert "carl has no account in hpc any more." in removed
        assert not UnixAccount.objects.exists()

    def test_is_for_operators(self) -> None:
        make_partition()
        client = client_of(make_owner())
        assert client.get("/clusters/hpc/edit/").status_code == 403
        for path in ("test/", "unix-accounts/", "unix-accounts/remove/"):
            assert client.post(f"/clusters/hpc/{path}").status_code == 403

    def test_a_cluster_of_nodes_has_none_of_this(self) -> None:
        Cluster.objects.create(name="hpc")
        assert client_of(make_operator()).post("/clusters/hpc/test/").status_code == 404


class TestClusterPage:
    def test_says_that_slurm_does_not_answer(self) -> None:
        make_partition()
        page = text_of(client_of(make_viewer()), "/clusters/hpc/")
        assert "Slurm does not answer" in page
        assert AWAY in page
        assert SlurmPartition.objects.get().trouble_since is not None
        assert "Slurm does not answer" in text_of(client_of(make_viewer()), "/clusters/")

    def test_keeps_the_last_known_state(self) -> None:
        cluster = make_partition()
        past = timezone.now() - timedelta(minutes=5)
        say(cluster, SlurmSnapshot((node("n1", "IDLE"),), (), past))
        snapshots._slots[(cluster.pk, "main")].expires_at = 1.0
        page = text_of(client_of(make_viewer()), "/clusters/hpc/")
        assert "Below is its last answer" in page
        assert "n1" in page

    def test_shows_nodes_with_states_and_reasons(self) -> None:
        cluster = make_partition()
        nodes = (
            node("n1", "MIXED"),
            node("n2", "IDLE", "DRAIN", reason="bad <DIMM>", reason_at=1_700_000_000),
            node("n3", "SOMETHING_NEW", gpus={}, gpus_allocated={}),
        )
        say(cluster, SlurmSnapshot(nodes, (job(7, "RUNNING", "zoe", "n1", gpus=1),), timezone.now()))
        page = text_of(client_of(make_viewer()), "/clusters/hpc/")
        for words in ("idle + drain", "bad &lt;DIMM&gt;", "something new", "1 of 4", "2 of 3 usable"):
            assert words in page, words
        assert "zoe" not in page
        assert "zoe" in text_of(client_of(make_operator()), "/clusters/hpc/")
        assert "Add a machine" not in page

    def test_a_refresh_gets_the_part_alone(self) -> None:
        say(make_partition(), SlurmSnapshot((), (), timezone.now()))
        part = text_of(client_of(make_viewer()), "/clusters/hpc/", **{"HX-Request": "true"})
        assert ("<html" in part, "Slurm has no nodes in this partition." in part) == (False, True)

    def test_of_another_workspace_is_not_there(self) -> None:
        make_partition().workspaces.add(make_workspace("speech"))
        client = client_of(make_viewer())
        assert client.get("/clusters/hpc/").status_code == 404
        assert client.get("/clusters/hpc/queue/").status_code == 404


class TestQueue:
    def test_shows_own_runs_by_link_and_others_as_counts(self) -> None:
        cluster, who = make_partition(), principal_of(make_contributor())
        run = queued(who)
        make_allocation(cluster, run.pk, who.user)
        make_allocation(cluster, "elsewhere", job_id=42, sentence="a secret of others")
        jobs = (
            job(41, "PENDING", "ada"),
            job(42, "PENDING", "ada"),
            job(50, "RUNNING", "zoe", "n1", gpus=2),
            job(51, "PENDING", "zoe", gpus=6464),
            job(52, "RUNNING", "max", "n1"),
        )
        say(cluster, SlurmSnapshot((), jobs, timezone.now()))
        page = text_of(client_of(who.user), "/clusters/hpc/queue/")
        for words in (f"/runs/{run.number}/", "Waits behind jobs of higher priority", "pending", "41"):
            assert words in page, words
        assert "a run of another workspace" in page
        assert "a secret of others" not in page
        assert ("all others" in page, "zoe" in page) == (True, False)
        by_account = text_of(client_of(make_operator()), "/clusters/hpc/queue/")
        assert by_account.index("zoe") < by_account.index("max")
        assert "6464" not in by_account

    def test_shows_runs_that_are_not_submitted_yet(self) -> None:
        make_partition()
        run = queued(principal_of(make_contributor()), resources={"cluster": "hpc"})
        page = text_of(client_of(make_viewer()), "/clusters/hpc/queue/")
        assert f"/runs/{run.number}/" in page
        assert "not submitted" in page

    def test_of_a_slurm_that_is_away_is_no_error(self) -> None:
        make_partition()
        assert "none" in text_of(client_of(make_viewer()), "/clusters/hpc/queue/")


def test_a_storm_of_reloads_asks_slurm_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    calls = tmp_path / "calls"
    for name in ("scontrol", "squeue"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {name} >> {calls}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    make_partition()
    client = client_of(make_viewer())
    for _ in range(5):
        text_of(client, "/clusters/hpc/")
        text_of(client, "/clusters/hpc/queue/")
    assert calls.read_text().split() == ["scontrol", "squeue"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(60, "0:01:00"), (3661, "1:01:01"), (86400, "1-00:00:00"), (90061, "1-01:01:01")]
)
def test_times_are_written_as_slurm_does(seconds: int, text: str) -> None:
    assert slurm_time(seconds) == text
