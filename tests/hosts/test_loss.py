"""Each host is cut off, crashes and comes back in the middle of a run: told rightly, nothing left behind, the
next run starts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hosts.bench import Host, Hosts
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.mpi, pytest.mark.slow]
UNREACHABLE_S, LOST_S = 3, 10
KINDS: dict[str, dict[str, Any]] = {
    "pytorch": {"type": "pytorch", "communication_backend": "gloo", "process_count": 4, "node_count": 2},
    "mpi": {"type": "mpi", "process_count_per_node": 2, "node_count": 2},
}
# What is lost: the host with the head of the run, or the other one.
HEAD_OF_PYTORCH, OTHER_OF_MPI = ("pytorch", 0), ("mpi", 1)
AGAIN = pytest.mark.long
WAITING = """
import os, time
print("here", os.environ["RANK"], flush=True)
time.sleep(600)
"""
HELLO = "print('hello', flush=True)"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[Hosts]:
    """Of this module's own: with little patience, and often broken."""
    settings = {"NODE_UNREACHABLE_AFTER": str(UNREACHABLE_S), "NODE_LOST_AFTER": str(LOST_S)}
    built = Hosts(tmp_path_factory.mktemp("loss"), frameworks_python, settings=settings)
    try:
        yield built.start()
    finally:
        built.stop()


@pytest.fixture(autouse=True)
def _whole(hosts: Hosts) -> Iterator[None]:
    """Every test begins and ends with both hosts up and ready."""
    yield
    for host in hosts.hosts:
        host.heal()
        if not host.up:
            host.boot()
            host.start_agent()
    for host in hosts.hosts:
        hosts.until(host, "ready")


def running(hosts: Hosts, kind: str, **limits: int) -> str:
    """A run on both hosts, all of whose ranks have said that they are there."""
    run = hosts.script(WAITING, distribution=KINDS[kind], limits={"grace_s": 1, **limits})
    for rank in range(4):
        hosts.runs.says(run, b"here", f"70_driver_log_{rank}.txt")
    return run


def leases_of(hosts: Hosts, host: Host) -> list[str]:
    return [lease["run"] for lease in hosts.runs.get(f"/nodes/{host.name}/")["leases"]]


def next_run_starts(hosts: Hosts, kind: str) -> None:
    run = hosts.script(HELLO, distribution=KINDS[kind])
    ended = hosts.runs.ended(run, 60)
    assert ended["state"] == "Completed", ended["sentence"]


@pytest.mark.parametrize(("kind", "which"), [HEAD_OF_PYTORCH, pytest.param(*OTHER_OF_MPI, marks=AGAIN)])
class TestCut:
    def test_a_run_ends_with_the_reason_and_its_host_is_not_given_away_until_it_is_clean(
        self, hosts: Hosts, kind: str, which: int
    ) -> None:
        run = running(hosts, kind)
        removed, other = hosts.hosts[which], hosts.hosts[1 - which]
        removed.cut()
        at = time.monotonic()
        hosts.until(removed, "unreachable", seconds=UNREACHABLE_S + 5)
        assert hosts.runs.detail(run)["state"] == "Running"
        ended = hosts.runs.ended(run, LOST_S + 15)
        assert time.monotonic() - at < LOST_S + 5
        assert (ended["state"], ended["reason"]) == ("Failed", "node_lost")
        assert removed.name in ended["sentence"]
        states = {member["node"]: member["state"] for member in ended["members"]}
        assert states == {removed.name: "Lost", other.name: "Stopped"}
        eventually(lambda: not other.marked(run), what=f"nothing of the run is left on {other.name}")
        eventually(lambda: run not in leases_of(hosts, other), what=f"{other.name} is free again")
        assert removed.marked(run), "what is cut off cannot be told to stop"
        assert run in leases_of(hosts, removed), "and so its place is not given away"
        removed.heal()
        eventually(lambda: not removed.marked(run), 20, f"nothing of the run is left on {removed.name}")
        eventually(lambda: run not in leases_of(hosts, removed), what=f"{removed.name} is free again")
        assert hosts.runs.detail(run)["state"] == "Failed"
        next_run_starts(hosts, kind)


@pytest.mark.parametrize(("kind", "which"), [pytest.param(*HEAD_OF_PYTORCH, marks=AGAIN), OTHER_OF_MPI])
class TestCrash:
    def test_a_host_that_comes_back_empty_says_so_and_is_used_again(
        self, hosts: Hosts, kind: str, which: int
    ) -> None:
        run = running(hosts, kind)
        removed, other = hosts.hosts[which], hosts.hosts[1 - which]
        removed.crash()
        ended = hosts.runs.ended(run, LOST_S + 15)
        assert ended["state"] == "Failed"
        assert removed.name in ended["sentence"]
        eventually(lambda: not other.marked(run), what=f"nothing of the run is left on {other.name}")
        assert run in leases_of(hosts, removed)
        removed.boot()
        removed.start_agent()
        hosts.until(removed, "ready")
        eventually(lambda: run not in leases_of(hosts, removed), what=f"{removed.name} is free again")
        next_run_starts(hosts, kind)


@pytest.mark.parametrize("kind", [pytest.param("pytorch", marks=AGAIN), "mpi"])
class TestOthers:
    def test_a_short_cut_ends_nothing(self, hosts: Hosts, kind: str) -> None:
        run = running(hosts, kind)
        hosts.hosts[1].cut()
        hosts.until(hosts.hosts[1], "unreachable")
        time.sleep(LOST_S / 2 - UNREACHABLE_S)
        hosts.hosts[1].heal()
        hosts.until(hosts.hosts[1], "ready")
        assert hosts.runs.detail(run)["state"] == "Running"
        assert hosts.hosts[1].marked(run)
        hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/")
        assert hosts.runs.ended(run, 20)["state"] == "Canceled"

    def test_cancel_ends_every_process_on_both_hosts(self, hosts: Hosts, kind: str) -> None:
        run = running(hosts, kind)
        hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/")
        assert hosts.runs.ended(run, 20)["state"] == "Canceled"
        assert not [line for host in hosts.hosts for line in host.marked(run)]

    def test_an_agent_that_is_killed_is_followed_by_one_that_goes_on(self, hosts: Hosts, kind: str) -> None:
        run = running(hosts, kind)
        host = hosts.hosts[1]
        host.kill_agent()
        host.start_agent()
        hosts.until(host, "ready")
        assert hosts.runs.detail(run)["state"] == "Running"
        hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/")
        assert hosts.runs.ended(run, 20)["state"] == "Canceled"
        assert not host.marked(run)


def test_a_retry_after_a_loss_is_a_new_attempt_once_the_host_is_back(hosts: Hosts) -> None:
    run = running(hosts, "pytorch", retries=1)
    removed = hosts.hosts[1]
    removed.cut()
    eventually(
        lambda: hosts.runs.detail(run)["state"] == "Queued",
        LOST_S + 15,
        "the run waits for its second attempt",
    )
    removed.heal()
    eventually(lambda: hosts.runs.detail(run)["attempt"] == 2, 40, "the second attempt begins")
    hosts.runs.until(run, "Running")
    hosts.runs.says(run, b"here", "70_driver_log_3.txt")
    first = hosts.runs.client.get(f"/api/v1/runs/{run}/logs/70_driver_log_0.txt", params={"attempt": 1})
    assert first.content == b"here 0\n"
    hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/")
    assert hosts.runs.ended(run, 20)["state"] == "Canceled"
