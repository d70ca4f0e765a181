"""The hub stops and starts again in the middle of a run on two hosts: nothing of it is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture
def own_hosts(tmp_path: Path, frameworks_python: str) -> Iterator[Hosts]:
    built = Hosts(tmp_path, frameworks_python)
    try:
        yield built.start()
    finally:
        built.stop()


def test_logs_are_byte_identical_after_a_restart_of_the_hub(own_hosts: Hosts) -> None:
    distribution = {"type": "pytorch", "communication_backend": "gloo", "process_count": 4, "node_count": 2}
    run = own_hosts.script(COUNTING, distribution=distribution)
    for rank in range(4):
        own_hosts.runs.says(run, b"line 50", f"70_driver_log_{rank}.txt")
    assert own_hosts.hub.stop() == 0
    own_hosts.hub.start()
    ended = own_hosts.runs.ended(run, 90)
    assert ended["state"] == "Completed", ended["sentence"]
    for rank in range(4):
        name = f"70_driver_log_{rank}.txt"
        stored, written = own_hosts.runs.log(run, name), own_hosts.file_on_host(run, name).read_bytes()
        assert b"counted to" in stored
        assert sha256(stored) == sha256(written)
