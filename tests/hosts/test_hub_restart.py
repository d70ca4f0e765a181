"""The hub stops and starts again in the middle of a run on two hosts: nothing of it is lost."""

from __future__ import annotations

import pytest

from tests.hosts.bench import Hosts
from tests.journeys.runs import sha256

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
COUNTING = """
import os, time
rank = os.environ["RANK"]
deadline = time.monotonic() + 15
number = 0
while time.monotonic() < deadline:
    number += 1
    print("rank", rank, "line", number, "x" * (number % 300), flush=True)
    time.sleep(0.005)
print("counted to", number, flush=True)
"""


def test_logs_are_byte_identical_after_a_restart_of_the_hub(hosts: Hosts) -> None:
    distribution = {"type": "pytorch", "communication_backend": "gloo", "process_count": 4, "node_count": 2}
    run = hosts.script(COUNTING, distribution=distribution)
    for rank in range(4):
        hosts.runs.says(run, b"line 50", f"70_driver_log_{rank}.txt")
    assert hosts.hub.stop() == 0
    hosts.hub.start()
    ended = hosts.runs.ended(run, 90)
    assert ended["state"] == "Completed", ended["sentence"]
    for rank in range(4):
        name = f"70_driver_log_{rank}.txt"
        stored, written = hosts.runs.log(run, name), hosts.file_on_host(run, name).read_bytes()
        assert b"counted to" in stored
        assert sha256(stored) == sha256(written)
