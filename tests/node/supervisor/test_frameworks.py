"""What real frameworks do while they wait, fail and end, seen from the node."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import pytest

from tests.hub import eventually, free_port
from tests.launch.builders import make_placement, make_spec
from tests.node.builders import order, process
from tests.node.hub import FakeHub
from tests.node.processes import remaining_processes
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.plan import RANK_WRAPPER
from trainhub_launch.planner import plan
from trainhub_launch.report import AttemptFact, StopOrder
from trainhub_node.agent import Agent

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]
REDUCE = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.ones(1000)
for _ in range(10):
    dist.all_reduce(ones)
"""
ONE_FAILS = """
if dist.get_rank() == 1:
    raise ValueError("bad")
dist.all_reduce(ones)
"""
FAILS_ONCE = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and dist.get_rank() == 1:
    sys.exit(7)
ones = torch.ones(1)
dist.all_reduce(ones)
# In one piece: without a buffer each argument of print is written alone, and two ranks write into this log.
print(f"restarted {os.environ['TORCHELASTIC_RESTART_COUNT']} sum {int(ones)}\\n", end="", flush=True)
"""
LONELY = """
import json, os
workers = [f"127.0.0.1:{port}" for port in os.environ["PORTS"].split()]
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": 0}})
import tensorflow as tf
print("waits", os.getpid(), flush=True)
tf.distribute.MultiWorkerMirroredStrategy()
"""
BARRIER = "from mpi4py import MPI\nworld = MPI.COMM_WORLD\nworld.Barrier()\n"


def swallows(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler of its own for the signal."""
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text())
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def system(python: str) -> EnvironmentSpec:
    return EnvironmentSpec(name="system", version="", kind="system", python=python)


def torch(hub: FakeHub, python: str, code: str = REDUCE) -> AttemptFact:
    port = str(free_port())
    ranks = [
        process(
            rank,
            ("python", "train.py"),
            of=2,
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
            WORLD_SIZE="2",
            OMP_NUM_THREADS="1",
        )
        for rank in range(2)
    ]
    return hub.wait_done(hub.give(order(hub, {"train.py": code}, *ranks, environment=system(python))), 120)


def mpi(hub: FakeHub, python: str, code: str) -> AttemptFact:
    launcher = ("mpirun", "--host", "127.0.0.1:3", "-np", "3", "--bind-to", "none", RANK_WRAPPER)
    ranks = [process(rank, ("python", "train.py"), of=3) for rank in range(3)]
    value = order(
        hub, {"train.py": BARRIER + code}, *ranks, environment=system(python), launcher=launcher, grace_s=5
    )
    fact = hub.wait_done(hub.give(value), 60)
    assert remaining_processes((value.run, 1)) == set()
    return fact


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def to_blame(fact: AttemptFact) -> list[tuple[int, int | None]]:
    return [
        (member.rank, member.exit_code)
        for member in fact.members
        if not member.ended_by_us and member.exit_code != 0
    ]


class TestTorch:
    def test_finished_ranks_do_not_abort_at_their_exit(
        self, hub: FakeHub, agent: Agent, frameworks_python: str
    ) -> None:
        ends = [[member.exit_code for member in torch(hub, frameworks_python).members] for _ in range(2)]

        assert ends == [[0, 0]] * 2

    def test_an_exception_in_one_rank_ends_the_other_that_waits_for_it(
        self, hub: FakeHub, agent: Agent, frameworks_python: str
    ) -> None:
        fact = torch(hub, frameworks_python, REDUCE + ONE_FAILS)

        assert to_blame(fact) == [(1, 1)]
        ended = [member.ended_at or 0 for member in fact.members]
        assert max(ended) - min(ended) < 5

    def test_torchrun_starts_its_processes_again(
        self, hub: FakeHub, agent: Agent, frameworks_python: str
    ) -> None:
        line = "torchrun --standalone --nproc_per_node 2 --max-restarts 1 train.py"
        (launcher,) = plan(make_spec(command=tuple(line.split())), make_placement()).processes
        options = order(hub, {"train.py": FAILS_ONCE}, launcher, environment=system(frameworks_python))

        fact = hub.wait_done(hub.give(options), 120)

        assert hub.log((options.run, 1)).count(b"restarted 1 sum 2") == 2
        assert [member.exit_code for member in fact.members] == [0]


class TestTensorFlow:
    def test_a_worker_that_swallows_sigterm_while_it_waits_for_its_peers_is_killed(
        self, hub: FakeHub, agent: Agent, frameworks_python: str
    ) -> None:
        mine, never = free_port(), free_port()
        alone = process(0, ("python", "train.py"), PORTS=f"{mine} {never}")
        key = hub.give(order(hub, {"train.py": LONELY}, alone, environment=system(frameworks_python)))
        hub.wait_log(key, b"waits", timeout_s=60)
        pid = eventually(
            lambda: next(iter(re.findall(rb"waits (\d+)\n", hub.log(key))), None), 10, "it says its number"
        )
        eventually(
            lambda: listens(mine) and swallows(int(pid), signal.SIGTERM), 60, "the worker's own server is up"
        )

        hub.stops[key] = StopOrder(*key, grace_s=1, why="canceled")
        member = hub.wait_done(key).members[0]

        assert (member.signal, member.ended_by_us) == (signal.SIGKILL, True)
        assert remaining_processes(key) == set()


@pytest.mark.mpi
class TestMpi4py:
    def test_a_sum_over_all_ranks(self, hub: FakeHub, agent: Agent, frameworks_python: str) -> None:
        fact = mpi(hub, frameworks_python, "assert world.allreduce(world.Get_rank()) == 3\n")

        assert [member.exit_code for member in fact.members] == [0, 0, 0]
        assert fact.warnings == ()

    def test_an_exception_in_one_rank_ends_all_although_the_others_wait(
        self, hub: FakeHub, agent: Agent, frameworks_python: str
    ) -> None:
        fact = mpi(
            hub, frameworks_python, "if world.Get_rank() == 1: raise ValueError('bad')\nworld.Barrier()\n"
        )

        assert to_blame(fact) == [(1, 1)]

    def test_an_abort_is_blamed_on_the_rank_that_called_it(
        self, hub: FakeHub, agent: Agent, frameworks_python: str
    ) -> None:
        fact = mpi(hub, frameworks_python, "if world.Get_rank() == 2: world.Abort(9)\nworld.Barrier()\n")

        assert to_blame(fact) == [(2, 9)]
