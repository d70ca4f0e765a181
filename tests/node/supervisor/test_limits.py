"""Limits of memory, processes and CPU time, by the control groups of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import script
from tests.node.hub import FakeHub
from tests.node.supervisor import test_readiness
from tests.node.supervisor.test_namespaces import agent  # noqa: F401 - a fixture
from tests.node.supervisor.test_termination import FOREVER
from trainhub_launch.report import StopOrder
from trainhub_node.agent import Agent

MIB = 2**20
EAT = "data = []\nfor _ in range(40): data.append(bytearray(10 * 2**20))\n"
FORK_BOMB = """
import os, time
children = 0
try:
    while children < 20000:
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
        children += 1
except OSError as error:
    print('refused', error.errno, flush=True)
"""
BURN = """
import os, time
end, before = time.monotonic() + 1.0, time.process_time()
while time.monotonic() < end: pass
print('cpu', time.process_time() - before, flush=True)
"""


@pytest.fixture(autouse=True)
def limited(agent: Agent) -> None:  # noqa: F811
    place = agent.settings.cgroup
    assert place is not None
    if not place.is_complete:
        pytest.skip(f"this machine has not all controllers: {place.missing}")


def groups(agent: Agent) -> list[Path]:  # noqa: F811
    assert agent.settings.cgroup is not None
    parents = agent.settings.cgroup.parents.values()
    return [path for parent in parents for path in Path(parent).iterdir() if path.is_dir()]


class TestMemory:
    def test_a_run_that_takes_more_is_killed_and_says_how_much_it_used(
        self,
        hub: FakeHub,
        agent: Agent,  # noqa: F811
    ) -> None:
        key = hub.give(replace(script(hub, EAT), memory_bytes=128 * MIB))
        fact = hub.wait_done(key)
        member = fact.members[0]
        assert (member.signal, member.out_of_memory) == (signal.SIGKILL, True)
        (warning,) = fact.warnings
        assert warning == (
            "It used 128 MiB of memory of 128 MiB on here, and the kernel killed processes of it for that."
        )
        assert groups(agent) == []

    def test_one_that_stays_below_is_left_alone_while_a_neighbour_is_killed(
        self,
        hub: FakeHub,
        agent: Agent,  # noqa: F811
    ) -> None:
        good = hub.give(script(hub, "import time\nprint('up', flush=True)\n" + FOREVER))
        hub.wait_log(good, b"up")
        greedy = hub.give(replace(script(hub, EAT), memory_bytes=64 * MIB))
        assert hub.wait_done(greedy).members[0].out_of_memory
        # Killed from outside meanwhile: the machine has seen a process killed for lack of memory, but it was
        # not this run's.
        os.kill(hub.facts[good].members[0].pid or 0, signal.SIGKILL)
        fact = hub.wait_done(good)
        assert (fact.members[0].signal, fact.members[0].out_of_memory) == (signal.SIGKILL, False)

    def test_what_lies_in_shared_memory_counts(self, hub: FakeHub, agent: Agent) -> None:  # noqa: F811
        code = (
            "with open('/dev/shm/x', 'wb') as file:\n    for _ in range(40): file.write(bytes(10 * 2**20))\n"
        )
        fact = hub.wait_done(hub.give(replace(script(hub, code), memory_bytes=64 * MIB)))
        # The file system's own size, half of the memory, ends it before the kernel has to.
        assert fact.members[0].exit_code == 1
        assert b"No space left" in hub.log((fact.run, fact.attempt))


def test_a_fork_bomb_ends_at_the_limit_of_processes_and_leaves_nothing(
    hub: FakeHub,
    agent: Agent,  # noqa: F811
) -> None:
    key = hub.give(script(hub, FORK_BOMB, grace_s=1))
    fact = hub.wait_done(key, 60)
    assert hub.log(key).startswith(b"refused 11")
    assert any("limit of 4,096 processes and threads" in warning for warning in fact.warnings)
    assert groups(agent) == []


def test_cpu_time_is_limited(hub: FakeHub, agent: Agent) -> None:  # noqa: F811
    key = hub.give(replace(script(hub, BURN), cpus=0.2))
    hub.wait_done(key, 60)
    assert float(hub.log(key).split()[1]) < 0.6


def test_a_limit_that_the_kernel_refuses_leaves_no_group(hub: FakeHub, agent: Agent) -> None:  # noqa: F811
    fact = hub.wait_done(hub.give(replace(script(hub, "print(1)"), cpus=0.001)))
    assert fact.error.startswith("Node here cannot limit memory and CPU cores for this run: /sys/fs/cgroup/")
    assert fact.error.endswith(": Invalid argument.")
    hub.wait(lambda: groups(agent) == [])


def test_their_place_outlives_the_agent_while_an_attempt_still_prepares(
    hub: FakeHub,
    agent: Agent,  # noqa: F811
    start_agent: Callable[..., Agent],
) -> None:
    assert agent.settings.cgroup is not None
    parents = [Path(parent) for parent in agent.settings.cgroup.parents.values()]
    key = test_readiness.give(hub)
    hub.wait_phase(key, "ready")
    agent.close()
    assert all(parent.is_dir() for parent in parents)

    following = start_agent(agent.settings)
    hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")
    hub.wait_done(key)
    hub.wait(lambda: key in hub.settled and not following.attempts.all())
    following.close()
    assert not any(parent.exists() for parent in parents)


def test_a_node_without_groups_refuses_a_run_with_limits(hub: FakeHub, agent: Agent) -> None:  # noqa: F811
    agent._starter._claims._settings = replace(agent.settings, cgroup=None)
    fact = hub.wait_done(hub.give(replace(script(hub, "print(1)"), cpus=1.0)))
    assert fact.error == "Node here cannot limit memory and CPU cores for this run: it has no control groups."
