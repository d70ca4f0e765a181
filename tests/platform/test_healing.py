"""kill -9 in the middle of a run: training goes on, and afterwards nothing is missing."""

from __future__ import annotations

import json
import time

import pytest
from websockets.sync.client import connect

from tests import runs
from tests.hub import Hub, eventually

pytestmark = pytest.mark.slow
COUNTING = """
import time
for number in range({lines}):
    print(number, "x" * 80, flush=True)
    time.sleep(0.02)
"""
SHORT = COUNTING.format(lines=200)


def half_way(hub: Hub, run: str) -> None:
    runs.wait_for(hub, run, "Running")
    eventually(lambda: len(runs.log(hub, run)) > 2000, what="the log moves")


def assert_whole(hub: Hub, run: str, lines: int = 200) -> None:
    facts = runs.wait_for(hub, run, "Completed")
    assert facts["state"] == "Completed"
    stored = runs.log(hub, run)
    assert stored == runs.node_log(hub, run)
    assert [int(line.split()[0]) for line in stored.splitlines()] == list(range(lines))


@pytest.mark.parametrize("part", ["web", "worker", "agent", "valkey"])
def test_a_run_outlives_a_killed_part_and_its_log_is_whole(hub: Hub, part: str) -> None:
    run = runs.submit(hub, SHORT)
    half_way(hub, run)
    hub.kill(part)
    assert_whole(hub, run)


def test_a_run_goes_on_while_trainhub_is_stopped_and_is_found_again(own_hub: Hub) -> None:
    own_hub.start()
    run = runs.submit(
        own_hub, COUNTING.format(lines=400)
    )  # 8 s: stopping the hub takes a while on a busy machine
    half_way(own_hub, run)
    own_hub.stop()
    before = len(runs.node_log(own_hub, run))
    eventually(lambda: len(runs.node_log(own_hub, run)) > before, what="training goes on without TrainHub")
    own_hub.start()
    assert_whole(own_hub, run, lines=400)


def test_a_run_that_ends_while_everything_is_killed_is_told_right(own_hub: Hub) -> None:
    own_hub.start()
    run = runs.submit(own_hub, SHORT)
    half_way(own_hub, run)
    for part in ("agent", "worker", "web", "valkey"):
        own_hub.kill(part, wait=False)
    assert own_hub.process is not None
    own_hub.process.kill()
    eventually(
        lambda: runs.node_log(own_hub, run).splitlines()[-1].startswith(b"199 "),
        what="training ended by itself",
    )
    own_hub.start()
    assert_whole(own_hub, run)


def test_cancel_and_live_messages_work_again_after_the_broker_was_killed(hub: Hub) -> None:
    run = runs.submit(hub, COUNTING.format(lines=10_000))
    half_way(hub, run)
    address = f"{hub.url.replace('http', 'ws')}/ws/runs/{run}/"
    with connect(address, additional_headers={"Authorization": f"Bearer {hub.owner_token()}"}) as socket:
        hub.kill("valkey")
        began = time.monotonic()
        while time.monotonic() < began + 30:
            message = json.loads(socket.recv(timeout=30))
            if message["type"] == "log.appended" and time.monotonic() > began + 2:
                break
        else:
            pytest.fail("no log message came after Valkey was killed")
    with hub.client() as client:
        client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
    assert runs.wait_for(hub, run)["state"] == "Canceled"
