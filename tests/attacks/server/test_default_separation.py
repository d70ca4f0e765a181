"""Root that says nothing about accounts: people's programs did run as root. Each run has an account of its
own now, the hub has one, and neither sees the other's files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.server.separated import (
    HUB_ACCOUNT,
    SeparatedHub,
    needs_root,
    public_folder,
    status,
    uid_of,
)
from tests.runs import log, submit, wait_for

pytestmark = [pytest.mark.slow, needs_root]
LOOK = """
import os
print(os.getuid())
for path in ({hub!r}, {node!r} + '/attempts'):
    try:
        print(os.listdir(path))
    except OSError as error:
        print(error.strerror)
"""


@pytest.fixture(scope="module")
def hub() -> Iterator[SeparatedHub]:
    with public_folder() as folder:
        running = SeparatedHub(folder, RUN_AS="")
        try:
            running.start()
            yield running
        finally:
            running.stop()


def test_the_start_says_so_and_the_hub_is_not_root(hub: SeparatedHub) -> None:
    assert "Each run executes under an account of its own" in hub.said()
    assert f"The hub runs as {HUB_ACCOUNT}" in hub.said()
    assert set(status(hub.pid("web"), "Uid")) == {str(uid_of(HUB_ACCOUNT))}


def test_a_run_has_an_account_of_its_own_and_sees_neither_the_hub_nor_other_runs(hub: SeparatedHub) -> None:
    code = LOOK.format(hub=str(hub.own_folder), node=str(hub.data_dir / "node"))
    runs = [submit(hub, code) for _ in range(2)]
    for run in runs:
        wait_for(hub, run, "Completed", seconds=120)
    lines = [log(hub, run).decode().splitlines() for run in runs]
    assert len({line[0] for line in lines}) == 2
    assert all(int(line[0]) >= 1_900_000_000 for line in lines)
    assert [line[1:] for line in lines] == [["No such file or directory", "Permission denied"]] * 2


def test_the_node_says_what_it_separates(hub: SeparatedHub) -> None:
    (node,) = hub.client().get("/api/v1/nodes/").raise_for_status().json()
    assert node["run_as"] == "range"
    assert "isolation:range" in node["capabilities"]
    assert "Each run has an account of its own" in node["separation"]


def test_a_run_that_takes_more_memory_than_it_asked_for_fails_and_says_how_much(hub: SeparatedHub) -> None:
    code = "held = [bytearray(10 * 2**20) for _ in range(40)]"
    run = submit(hub, code, resources={"memory": "128MiB", "cpus": 1})
    wait_for(hub, run, "Failed", seconds=120)
    shown = hub.client().get(f"/api/v1/runs/{run}/").raise_for_status().text
    assert "It used 128 MiB of memory of 128 MiB" in shown


def test_a_run_that_asks_for_more_than_there_is_is_refused_with_what_there_is(hub: SeparatedHub) -> None:
    body = {"source": {"type": "example", "name": "hello"}, "script": "x.py", "resources": {"memory": "1TiB"}}
    answer = hub.client().post("/api/v1/runs/", json=body)
    assert answer.status_code == 400
    assert "ask for at most" in answer.text
