"""Runs of a hub that is no root and has no Slurm: all of Slurm is on a login node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.server.separated import status, uid_of
from tests.environments.source_builds.ssh_server import make_key
from tests.hub import eventually
from tests.slurm.hub import CLUSTER, PATIENCE_S
from tests.slurm.login import LoginHost
from tests.slurm.login_node.plain_hub import HUB_ACCOUNT, PlainHub
from tests.slurm.runs.test_runs import ALONE, MEET, WAIT

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
ACCOUNTS = f"/api/v1/clusters/{CLUSTER}/unix-accounts/"


@pytest.fixture(scope="module")
def plain_hub(login: LoginHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainHub]:
    hub = PlainHub(login, tmp_path_factory.mktemp("plain hub"))
    try:
        yield hub.start()
    finally:
        hub.stop()


@pytest.fixture(autouse=True)
def _leaves_nothing(plain_hub: PlainHub) -> Iterator[None]:
    yield
    plain_hub.clear()


def test_the_test_says_what_works_there(plain_hub: PlainHub) -> None:
    account = uid_of(HUB_ACCOUNT)
    assert all(status(plain_hub.hub.pid(part), "Uid") == [str(account)] * 4 for part in ("web", "worker"))
    checks = plain_hub.test()
    assert {name for name, check in checks.items() if check["result"] != "ok"} == {"python"}
    assert checks["submission"]["sentence"] == "Slurm takes jobs of ada with these settings."
    assert checks["login"]["sentence"].endswith("lets TrainHub in, and trainhub-login answers.")
    assert checks["accounts"]["sentence"] == "The hub can submit as ada."


def test_ranks_on_two_nodes_meet_as_the_persons_own_processes(plain_hub: PlainHub) -> None:
    run = plain_hub.script(MEET, nodes=2, processes=2, resources={"gpus_per_node": 0})
    plain_hub.completes(run)
    assert b"met [b'1']" in plain_hub.runs.log(run, "70_driver_log_0.txt")
    alone = plain_hub.script(ALONE)
    plain_hub.completes(alone)
    assert plain_hub.runs.log(alone).split()[0] == b"64101"


def test_a_canceled_run_leaves_no_job(plain_hub: PlainHub) -> None:
    run = plain_hub.script(WAIT)
    plain_hub.starts(run)
    plain_hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
    assert plain_hub.ended(run)["state"] == "Canceled"
    eventually(lambda: not plain_hub.jobs(), PATIENCE_S, "its job is canceled")


def test_a_waiting_run_is_canceled_as_its_person(plain_hub: PlainHub) -> None:
    plain_hub.slurm.admin("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        run = plain_hub.script(ALONE)
        plain_hub.waits(run, "partition")
        plain_hub.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
        eventually(lambda: not plain_hub.jobs(), PATIENCE_S, "its job is canceled")
    finally:
        plain_hub.slurm.admin("scontrol", "update", "PartitionName=main", "State=UP")


def test_an_account_outside_of_the_group_is_refused(plain_hub: PlainHub) -> None:
    entry = {"person": "admin", "account": "hub"}
    plain_hub.runs.client.put(ACCOUNTS, json=entry).raise_for_status()
    try:
        assert "hub is not in the group team" in plain_hub.test()["accounts"]["sentence"]
        ended = plain_hub.ended(plain_hub.script(ALONE))
    finally:
        plain_hub.runs.client.put(ACCOUNTS, json={**entry, "account": "ada"}).raise_for_status()
    assert ended["state"] == "Failed"
    assert "hub is not in the group team" in ended["sentence"]
    assert "map the person to another account" in ended["sentence"]
    assert plain_hub.jobs() == []


@pytest.mark.long
def test_a_login_node_that_is_cut_off_ends_nothing(plain_hub: PlainHub) -> None:
    run = plain_hub.script("import time; print('here', flush=True); time.sleep(45); print('end')")
    plain_hub.starts(run)
    plain_hub.login.block()
    try:
        eventually(lambda: "cannot be reached" in plain_hub.trouble(), PATIENCE_S, "the trouble is noted")
        assert plain_hub.runs.detail(run)["state"] == "Running"
        later = plain_hub.script(ALONE)
        plain_hub.waits(later, "cannot be reached")
        plain_hub.completes(run)
    finally:
        plain_hub.login.unblock()
    plain_hub.completes(later)
    eventually(lambda: not plain_hub.trouble(), PATIENCE_S, "the trouble is over")


@pytest.mark.long
def test_another_key_of_the_host_is_not_trusted(plain_hub: PlainHub, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    plain_hub.login.show_host_key(tmp_path / "other")
    try:
        run = plain_hub.script(ALONE)
        plain_hub.waits(run, "shows another host key")
        assert "shows another host key" in plain_hub.test()["connection"]["sentence"]
    finally:
        plain_hub.login.show_host_key(plain_hub.login.host_key)
    plain_hub.completes(run)
    eventually(lambda: not plain_hub.trouble(), PATIENCE_S, "the trouble is over")


@pytest.mark.long
def test_another_key_of_the_hub_works_once_it_is_there(plain_hub: PlainHub) -> None:
    address = f"/api/v1/clusters/{CLUSTER}/login-node/rotate-key/"
    plain_hub.runs.client.post(address).raise_for_status()
    assert "does not accept the hub's key" in plain_hub.test()["connection"]["sentence"]
    plain_hub.prepare_login()
    assert plain_hub.test()["submission"]["result"] == "ok"
    plain_hub.completes(plain_hub.script(ALONE))
