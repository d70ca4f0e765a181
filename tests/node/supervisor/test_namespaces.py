"""Runs in namespaces of their own end, are ended, and are found again as without."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node.builders import environ, order, process, script
from tests.node.hub import FakeHub, Key
from tests.node.processes import agent_process, child_pid, remaining_processes, wait_for_exit
from tests.node.supervisor.test_termination import ESCAPE, FOREVER, STUBBORN, stop
from tests.node.test_range import range_settings
from trainhub_launch.plan import RANK_WRAPPER
from trainhub_node import proc
from trainhub_node.agent import Agent
from trainhub_node.isolation import landlock

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make these namespaces")
# Orphans of the run, that clear their environment and leave session and group.
HIDDEN_DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve('/bin/sleep', ['sleep', '600'], {})
    os._exit(0)
os.wait()
"""


@pytest.fixture
def agent(hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path) -> Agent:
    return start_agent(range_settings(hub, reachable))


def range_environ(hub: FakeHub, folder: Path) -> dict[str, str]:
    own = {"TRAINHUB_NODE_RUN_AS": "range", "TRAINHUB_NODE_PYTHON": "/usr/bin/python3"}
    return {**environ(hub, folder), **own}


def in_namespaces_of(key: Key, attempts: Path) -> set[int]:
    """Living processes in the namespaces of the attempt, without the one that holds them."""
    (holder,) = [pid for pid in proc.child_pids(child_pid(attempts, key)) if proc.inner_pid(pid) == 1]
    space = Path(f"/proc/{holder}/ns/pid").readlink()
    return {one.pid for one in proc.list_processes() if one.pid != holder and _space(one.pid) == space}


def _space(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink()
    except OSError:
        return None


class TestEnds:
    def test_cancel_ends_the_ranks_by_sigterm(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, FOREVER, ranks=2))
        for rank in range(2):
            hub.wait_log(key, b"up", f"70_driver_log_{rank}.txt")
        stop(hub, key)
        fact = hub.wait_done(key)
        assert [(m.signal, m.ended_by_us) for m in fact.members] == [(signal.SIGTERM, True)] * 2
        assert remaining_processes(key) == set()

    def test_whoever_ignores_sigterm_is_killed_after_the_grace(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, STUBBORN))
        hub.wait_log(key, b"up")
        stop(hub, key, grace_s=1)
        member = hub.wait_done(key).members[0]
        assert (member.signal, member.ended_by_us) == (signal.SIGKILL, True)

    def test_the_exit_code_is_that_of_the_rank(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, "raise SystemExit(7)"))
        assert hub.wait_done(key).members[0].exit_code == 7

    def test_a_start_that_fails_leaves_no_process(self, hub: FakeHub, agent: Agent) -> None:
        ranks = [process(rank, ("python", "train.py"), of=2) for rank in range(2)]
        launcher = ("no-such-mpirun", RANK_WRAPPER)
        key = hub.give(order(hub, {"train.py": FOREVER}, *ranks, launcher=launcher))
        assert "no-such-mpirun" in hub.wait_done(key).error
        wait_for_exit(agent.settings.attempts, key)
        assert remaining_processes(key) == set()

    def test_an_orphan_that_hides_is_ended_with_the_run(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, HIDDEN_DAEMON + FOREVER))
        hub.wait_log(key, b"up")
        hidden = in_namespaces_of(key, agent.settings.attempts)
        assert len(hidden) == 2
        stop(hub, key)
        hub.wait_done(key)
        assert not [pid for pid in hidden if proc.identity(pid)]

    def test_what_a_finished_rank_left_behind_is_ended(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, ESCAPE + "print('finished')\n"))
        fact = hub.wait_done(key)
        assert (fact.members[0].exit_code, fact.members[0].ended_by_us, fact.stopping) == (0, False, "")
        assert remaining_processes(key) == set()


class TestRecords:
    def test_name_the_process_as_the_node_knows_it(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, "import os\nprint(os.getpid(), flush=True)\n" + FOREVER))
        hub.wait_log(key, b"up")
        pid = hub.facts[key].members[0].pid or 0
        assert proc.inner_pid(pid) == int(hub.log(key).split()[0]) != pid

    @pytest.mark.mpi
    def test_of_mpi_are_translated_and_its_ranks_are_cancelled(self, hub: FakeHub, agent: Agent) -> None:
        launcher = ("mpirun", "--host", "127.0.0.1:2", "-np", "2", "--bind-to", "none", RANK_WRAPPER)
        ranks = [process(rank, ("python", "train.py"), of=2) for rank in range(2)]
        code = "import os\nprint(os.getpid(), flush=True)\n" + FOREVER
        key = hub.give(order(hub, {"train.py": code}, *ranks, launcher=launcher))
        for rank in range(2):
            hub.wait_log(key, b"up", f"70_driver_log_{rank}.txt")
        hub.wait(lambda: all(proc.inner_pid(m.pid or 0) > 1 for m in hub.facts[key].members))
        for member in hub.facts[key].members:
            inner = hub.log(key, f"70_driver_log_{member.rank}.txt").split()[0]
            assert proc.inner_pid(member.pid or 0) == int(inner)
        stop(hub, key)
        fact = hub.wait_done(key)
        assert all(member.ended_by_us and member.signal for member in fact.members), fact
        assert remaining_processes(key) == set()


class TestCrashes:
    def test_a_run_survives_its_agent_and_the_next_one_knows_it(self, hub: FakeHub, reachable: Path) -> None:
        env, attempts = range_environ(hub, reachable), reachable / "attempts"
        key = hub.give(script(hub, FOREVER))
        with agent_process(env):
            hub.wait_log(key, b"up")
        before = child_pid(attempts, key)
        with agent_process(env):
            stop(hub, key)
            fact = hub.wait_done(key)
        assert child_pid(attempts, key) == before
        assert fact.members[0].signal == signal.SIGTERM

    def test_a_killed_child_takes_its_run_along(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, HIDDEN_DAEMON + FOREVER))
        hub.wait_log(key, b"up")
        inside = in_namespaces_of(key, agent.settings.attempts)
        os.kill(child_pid(agent.settings.attempts, key), signal.SIGKILL)
        fact = hub.wait_done(key)
        assert "was killed" in fact.error
        assert not [pid for pid in inside if proc.identity(pid)]

    def test_a_killed_holder_ends_the_run(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, FOREVER))
        hub.wait_log(key, b"up")
        (holder,) = [
            pid
            for pid in proc.child_pids(child_pid(agent.settings.attempts, key))
            if proc.inner_pid(pid) == 1
        ]
        os.kill(holder, signal.SIGKILL)
        assert hub.wait_done(key).members[0].signal == signal.SIGKILL
        wait_for_exit(agent.settings.attempts, key)

    def test_a_killed_wrapper_leaves_its_rank_to_the_child(self, hub: FakeHub, agent: Agent) -> None:
        code = "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
        key = hub.give(script(hub, code))
        hub.wait_log(key, b"up")
        record = agent.settings.attempts / f"{key[0]}-{key[1]}" / "ranks" / "0.started.json"
        hub.wait(record.exists)
        os.kill(json.loads(record.read_text())["wrapper"], signal.SIGKILL)
        (agent.settings.attempts / f"{key[0]}-{key[1]}" / "work" / "go").touch()
        assert hub.wait_done(key).members[0].exit_code == 0


@pytest.mark.skipif(not landlock.has_scopes(), reason="needs Landlock of Linux 6.12")
def test_ranks_of_a_run_reach_the_abstract_sockets_of_each_other(hub: FakeHub, agent: Agent) -> None:
    code = (
        "import os, socket, time\n"
        "name = '\\0' + os.environ['TRAINHUB_RUN_ID']\n"
        "own = socket.socket(socket.AF_UNIX)\n"
        "if os.environ['RANK'] == '0':\n"
        "    own.bind(name); own.listen(); own.accept()\n"
        "else:\n"
        "    for _ in range(100):\n"
        "        try: own.connect(name); break\n"
        "        except ConnectionRefusedError: time.sleep(0.1)\n"
        "    else: raise SystemExit('refused')\n"
    )
    key = hub.give(script(hub, code, ranks=2))
    assert [member.exit_code for member in hub.wait_done(key, 60).members] == [0, 0]
