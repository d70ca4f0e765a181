from __future__ import annotations

import signal
import time
from dataclasses import replace

import pytest

from tests.journeys.runs import alive
from tests.node.builders import order, process, script
from tests.node.hub import FakeHub, Key
from tests.node.processes import remaining_processes, wait_for_exit
from trainhub_launch.report import StopOrder
from trainhub_node import proc
from trainhub_node.agent import Agent
from trainhub_node.containers.engine import NAMES as ENGINES

FOREVER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', "
    "flush=True)\ntime.sleep(600)\n"
)
# A grandchild in a session of its own, orphaned by its parent's death.
ESCAPE = """
import os, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write, str(os.getpid()).encode())
        time.sleep(600)
    os._exit(0)
os.wait()
print('escaped', int(os.read(read, 16)), flush=True)
"""


def stop(hub: FakeHub, key: Key, why: str = "canceled", grace_s: int = 5) -> None:
    hub.stops[key] = StopOrder(*key, grace_s=grace_s, why=why)


class TestCancel:
    @pytest.mark.in_containers(*ENGINES)
    def test_ends_the_ranks_and_says_that_it_was_us(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, FOREVER, ranks=2))
        hub.wait_log(key, b"up", "70_driver_log_0.txt")
        hub.wait_log(key, b"up", "70_driver_log_1.txt")

        stop(hub, key)

        fact = hub.wait_done(key)
        assert fact.stopping == "canceled"
        assert [(m.signal, m.ended_by_us) for m in fact.members] == [(signal.SIGTERM, True)] * 2
        assert remaining_processes(key) == set()

    def test_takes_grandchildren_in_sessions_of_their_own_along(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, ESCAPE + FOREVER))
        hub.wait_log(key, b"up")
        grandchild = int(hub.log(key).split()[1])
        existing = proc.identity(grandchild)
        assert existing

        stop(hub, key)

        hub.wait_done(key)
        assert not proc.is_alive(grandchild, existing)
        assert remaining_processes(key) == set()

    @pytest.mark.in_containers
    def test_kills_after_the_grace_whoever_ignores_sigterm(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, STUBBORN))
        hub.wait_log(key, b"up")
        began = time.monotonic()

        stop(hub, key, grace_s=1)

        member = hub.wait_done(key).members[0]
        assert (member.signal, member.ended_by_us) == (signal.SIGKILL, True)
        assert 1 <= time.monotonic() - began < 30

    @pytest.mark.in_containers
    def test_leaves_time_to_end_well(self, hub: FakeHub, agent: Agent) -> None:
        code = (
            "import signal, sys, time\nsignal.signal(15, lambda *a: (time.sleep(0.3), print('saved'), "
            "sys.exit(0)))\n"
        )
        key = hub.give(script(hub, code + FOREVER))
        hub.wait_log(key, b"up")

        stop(hub, key)

        fact = hub.wait_done(key)
        assert hub.log(key) == b"up\nsaved\n"
        assert (fact.members[0].exit_code, fact.members[0].ended_by_us) == (0, True)

    def test_before_the_snapshot_is_here_nothing_is_started(self, hub: FakeHub, agent: Agent) -> None:
        value = script(hub, FOREVER)
        data = hub.blobs.pop(value.snapshot)
        hub.slow_snapshots.add(value.snapshot)
        key = hub.give(value)
        hub.wait_phase(key, "accepted")

        stop(hub, key)

        fact = hub.wait_done(key)
        assert data
        assert fact.stopping == "canceled"
        assert [member.state for member in fact.members] == ["waiting"]

    def test_the_first_reason_stays(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, STUBBORN))
        hub.wait_log(key, b"up")
        stop(hub, key, grace_s=1)
        hub.wait(lambda: hub.facts[key].stopping == "canceled")

        stop(hub, key, why="orphan")

        assert hub.wait_done(key).stopping == "canceled"


class TestGang:
    @pytest.mark.in_containers
    def test_one_failed_rank_ends_the_others_and_only_it_is_to_blame(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        code = "import os, time\nif os.environ['RANK'] == '1': raise SystemExit(7)\ntime.sleep(600)\n"
        key = hub.give(script(hub, code, ranks=3))

        fact = hub.wait_done(key)

        assert fact.stopping == "gang"
        assert [(m.exit_code, m.signal, m.ended_by_us) for m in fact.members] == [
            (None, signal.SIGTERM, True),
            (7, None, False),
            (None, signal.SIGTERM, True),
        ]
        ends = [member.ended_at or 0.0 for member in fact.members]
        assert min(ends) == ends[1]

    def test_those_who_only_serve_are_ended_when_the_deciding_rank_is_done(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        value = order(
            hub,
            {"chief.py": "print('done')", "ps.py": FOREVER},
            process(0, ("python", "chief.py"), of=2),
            process(1, ("python", "ps.py"), of=2, decides=False),
        )
        key = hub.give(value)

        fact = hub.wait_done(key)

        assert (fact.members[0].exit_code, fact.members[0].ended_by_us) == (0, False)
        assert fact.members[1].ended_by_us
        assert fact.stopping == ""

    def test_a_failure_of_one_who_only_serves_ends_nobody(self, hub: FakeHub, agent: Agent) -> None:
        chief = "import time\nwhile not __import__('os').path.exists('go'): time.sleep(0.01)\n"
        value = order(
            hub,
            {"chief.py": chief, "ps.py": "raise SystemExit(5)"},
            process(0, ("python", "chief.py"), of=2),
            process(1, ("python", "ps.py"), of=2, decides=False),
        )
        key = hub.give(value)
        hub.wait(lambda: key in hub.facts and hub.facts[key].members[1].exit_code == 5)
        assert hub.facts[key].members[0].state == "running"

        (agent.settings.attempts / f"{value.run}-1" / "work" / "go").touch()

        assert hub.wait_done(key).members[0].exit_code == 0

    def test_what_a_finished_rank_left_behind_is_ended(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, ESCAPE + "print('finished')\n"))

        fact = hub.wait_done(key)

        assert (fact.members[0].exit_code, fact.members[0].ended_by_us, fact.stopping) == (0, False, "")
        assert remaining_processes(key) == set()
        assert not alive(int(hub.log(key).split()[1]))


class TestTimeLimit:
    def test_ends_the_run_by_itself(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, FOREVER, timeout_s=1))

        fact = hub.wait_done(key)

        assert fact.stopping == "timeout"
        assert fact.members[0].ended_by_us
        assert (fact.members[0].ended_at or 0) - fact.phase_at["running"] < 3

    @pytest.mark.in_containers
    def test_holds_while_agent_and_hub_are_away(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, FOREVER, timeout_s=1))
        hub.wait_log(key, b"up")
        hub.available = False
        agent.close()

        wait_for_exit(agent.settings.attempts, key)

        assert remaining_processes(key) == set()


class TestOrder:
    def test_a_stop_for_an_attempt_that_is_not_here_is_nothing(self, hub: FakeHub, agent: Agent) -> None:
        agent.stop(StopOrder("f" * 32, 1, 5, "orphan"))

        key = hub.give(script(hub, "print('fine')"))

        assert hub.wait_done(key).members[0].exit_code == 0

    @pytest.mark.parametrize("why", ["canceled", "orphan", "timeout"])
    def test_says_why(self, hub: FakeHub, agent: Agent, why: str) -> None:
        value = script(hub, FOREVER)
        key = hub.give(replace(value, grace_s=1))
        hub.wait_log(key, b"up")

        stop(hub, key, why=why, grace_s=1)

        assert hub.wait_done(key).stopping == why
