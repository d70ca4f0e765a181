"""Two workspaces with the shares 3 : 1 under load on two hosts, and a run that is preempted there and goes
on with what it has saved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import httpx
import pytest

from tests.hosts.bench import CLUSTER, NOTHING, Host, Hosts, HostsHub
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

SHORT = "import time; time.sleep(0.2)\n"
SAVES = """
import os, pathlib, signal, sys, time
state = pathlib.Path(os.environ['TRAINHUB_CHECKPOINT_DIR'], 'state')
if state.exists():
    print('goes on after', state.read_text(), flush=True)
def save(number, frame):
    aside = state.with_name('.state')
    aside.write_text('step 7')
    aside.rename(state)
    print('saved', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('works', flush=True)
time.sleep(600)
"""
# So many starts are judged, and so many runs wait at the beginning: at the end some of both are left.
STARTS = 16
RUNS = {"vision": 16, "speech": 8}


class SmallHost(Host):
    """It takes one process at a time."""

    def join(self, hub: HostsHub, python: str) -> None:
        super().join(hub, python)
        self.settings["TRAINHUB_NODE_SLOTS"] = "1"


class SmallHosts(Hosts):
    host_type = SmallHost

    def client_in(self, workspace: str) -> httpx.Client:
        made = self.hub.manage("token", "create", "admin", "--workspace", workspace)
        return self.hub.client(made.stdout.split()[-1])


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallHosts]:
    settings = {**NOTHING, "PREEMPT_AFTER_MINUTES": "0"}
    built = SmallHosts(tmp_path_factory.mktemp("shared"), sys.executable, settings=settings)
    try:
        built.start()
        yield built
    finally:
        built.stop()


def started(client: httpx.Client) -> list[str]:
    """When each run of the client's workspace has started."""
    answer = client.get("/api/v1/runs/", params={"page_size": 100})
    assert answer.status_code == httpx.codes.OK, answer.text
    rows = answer.json()["results"]
    return [row["started_at"] for row in rows if row["started_at"]]


def is_at_work(hosts: Hosts, run: str) -> bool:
    return b"works" in hosts.runs.log(run)


# tests/launch/fair_share replays half a month with 5,000 jobs.
@pytest.mark.long
def test_two_workspaces_settle_within_a_tenth_of_their_shares(hosts: SmallHosts) -> None:
    owner = hosts.runs.client
    clients = {}
    for name in RUNS:
        hosts.hub.manage("workspace", "create", name.title(), "--owner", "admin", "--slug", name)
        clients[name] = hosts.client_in(name)
    hosts.hub.manage("cluster", "shares", CLUSTER, "vision=3")
    hosts.hub.manage("cluster", "drain", CLUSTER)
    for name, client in clients.items():
        hosts.runs.client = client
        source = {"type": "snapshot", "id": hosts.runs.snapshot(main_py=SHORT)}
        for _ in range(RUNS[name]):
            hosts.submit({"source": source, "script": "main.py", "experiment": "shares"})
    hosts.hub.manage("cluster", "resume", CLUSTER)
    hosts.runs.client = owner

    def starts() -> list[tuple[str, str]]:
        return sorted((at, name) for name, client in clients.items() for at in started(client))

    eventually(lambda: len(starts()) >= STARTS, 240, f"{STARTS} runs have started")
    first = [name for _, name in starts()[:STARTS]]
    assert 0.675 <= first.count("vision") / STARTS <= 0.825, first
    for client in clients.values():
        rows = client.get("/api/v1/runs/", params={"page_size": 100, "state": "active"}).json()["results"]
        for row in rows:
            client.post(f"/api/v1/runs/{row['id']}/cancel/")


def test_a_preempted_run_saves_its_work_and_goes_on_with_it(hosts: SmallHosts) -> None:
    low = [hosts.script(SAVES, priority=-1) for _ in hosts.hosts]
    for run in low:
        hosts.runs.until(run, "Running", seconds=120)
    for run in low:
        eventually(partial(is_at_work, hosts, run), 30, "it works")
    urgent = hosts.script(SHORT)
    assert hosts.runs.ended(urgent, 120)["state"] == "Completed"
    events = {run: hosts.runs.get(f"/runs/{run}/events/") for run in low}
    (victim,) = [run for run in low if any(event["reason"] == "preempted_by_run" for event in events[run])]
    eventually(lambda: hosts.runs.detail(victim)["attempt"] == 2, 60, "it starts again")
    hosts.runs.until(victim, "Running", seconds=60)
    first = hosts.runs.client.get(f"/api/v1/runs/{victim}/logs/70_driver_log.txt", params={"attempt": 1})
    assert b"saved" in first.content
    eventually(lambda: b"goes on after step 7" in hosts.runs.log(victim), 30, "it goes on where it was")
    for run in low:
        hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/")
