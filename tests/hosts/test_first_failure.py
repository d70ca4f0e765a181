"""Rank 1 raises on one host while rank 0 waits for it in an all-reduce on the other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hosts.bench import Hosts
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.mpi, pytest.mark.frameworks, pytest.mark.slow]
TORCH = """
import os, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
print("together", flush=True)
if dist.get_rank() == 1:
    time.sleep(1)
    raise ValueError("the labels of shard 1 are empty")
dist.all_reduce(torch.ones(1))
"""
MPI = """
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
world.allreduce(1)
print("together", flush=True)
if world.rank == 1:
    time.sleep(1)
    raise ValueError("the labels of shard 1 are empty")
world.allreduce(1)
"""
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "pytorch": (
        TORCH,
        {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 2},
    ),
    "mpi": (MPI, {"type": "mpi", "process_count_per_node": 1, "node_count": 2}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_page_and_api_lead_with_rank_1s_exception(hosts: Hosts, kind: str) -> None:
    text, distribution = KINDS[kind]
    run = hosts.script(text, distribution=distribution, limits={"grace_s": 2})
    hosts.runs.says(run, b"ValueError: the labels of shard 1 are empty", "70_driver_log_1.txt", seconds=60)
    cause = eventually(lambda: hosts.runs.detail(run)["cause"], 30, "the API names the cause")
    assert (cause["rank"], cause["node"]) == (1, hosts.hosts[1].name)
    assert "the labels of shard 1 are empty" in cause["message"]
    ended = hosts.runs.ended(run, 30)
    assert (ended["state"], ended["cause"]["rank"]) == ("Failed", 1)
    page = hosts.page_of(ended["number"])
    assert "ValueError" in page[: page.index('data-mount="log-view"')]
