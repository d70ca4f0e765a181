"""Lines of a real run reach the log system, whatever happens to the worker and to that system meanwhile."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from jobs.log_shipping.backlog import MAX_BATCH_LINES
from tests import runs
from tests.hub import Hub, eventually
from tests.log_shipping.receiver import LogReceiver

pytestmark = pytest.mark.slow
LINES, KILLS = 1500, 3
SCRIPT = f"""
import os, time
print("token", os.environ["TRAINHUB_TOKEN"], flush=True)
for number in range({LINES}):
    print("same on all ranks", number // 2, flush=True)
    time.sleep(0.008)
print("the end", end="", flush=True)
"""


def test_no_line_is_lost_when_worker_and_log_system_fail(tmp_path: Path, receiver: LogReceiver) -> None:
    receiver.token = "of-the-log-system"
    hub = Hub(
        tmp_path / "data",
        SHIP_LOGS_TO=receiver.url,
        SHIP_LOGS_KIND="loki",
        SHIP_LOGS_HEADERS=f"Authorization: Bearer {receiver.token}",
        SHIP_LOGS_LABELS="site=north",
    )
    try:
        hub.start()
        eventually(lambda: "attempts since" in hub.manage("ship-logs").stdout, 30, "the worker is at it")
        distribution = {"type": "pytorch", "process_count": 2, "communication_backend": "gloo"}
        run = runs.submit(hub, SCRIPT, distribution=distribution)
        for number in range(KILLS):
            _await_more(receiver)
            receiver.answers = [(503, {"Retry-After": "1"}, b"")] * number
            hub.kill("worker")
        runs.wait_for(hub, run, "Completed", seconds=120)
        eventually(lambda: receiver.texts().count("the end") >= 2, 60, "the last lines arrive")
        eventually(lambda: "bytes wait" not in hub.manage("ship-logs").stdout, 30, "nothing waits")
    finally:
        hub.stop()
    _judge(receiver)


def _await_more(receiver: LogReceiver) -> None:
    before = len(receiver.entries)
    eventually(lambda: len(receiver.entries) > before, 60, "more lines arrive")


def _judge(receiver: LogReceiver) -> None:
    assert receiver.refusals == []
    # Equal lines follow each other, and the ranks print the same at the same time: none may be lost for that.
    stored = [f"same on all ranks {number // 2}" for number in range(LINES)] + ["the end"]
    for rank in ("0", "1"):
        token, *texts = [entry.text for entry in receiver.entries if entry.about.get("rank") == rank]
        assert token.startswith("token ***")
        assert set(token.removeprefix("token ")) == {"*"}
        assert not Counter(stored) - Counter(texts)
        assert list(dict.fromkeys(texts)) == list(dict.fromkeys([*stored, token]))[: len(set(texts))]
        assert (Counter(texts) - Counter(stored)).total() <= KILLS * MAX_BATCH_LINES
    assert {entry.labels["site"] for entry in receiver.entries} == {"north"}
