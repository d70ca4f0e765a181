from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node.builders import environ, script, settings
from tests.node.hub import FakeHub, Key
from tests.node.processes import agent_process, child_pid, remaining_processes, wait_for_exit, wait_pid
from trainhub_launch.report import StopOrder
from trainhub_node import proc, records
from trainhub_node.agent import Agent
from trainhub_node.attempts import termination

# Writes numbered lines until told to end, so that nothing lost or doubled goes unseen.
COUNTING = """
import os, time
n = 0
while not os.path.exists('go'):
    print('line', n, flush=True)
    n += 1
    time.sleep(0.002)
print('the end', flush=True)
open('outputs/n', 'w').write(str(n))
"""
FOREVER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


def release_ranks(attempts: Path, key: Key) -> None:
    (attempts / f"{key[0]}-{key[1]}" / "work" / "go").touch()


def check_whole(hub: FakeHub, attempts: Path, key: Key) -> None:
    """Every byte of the node's file once, in order."""
    file = attempts / f"{key[0]}-{key[1]}" / "logs" / "70_driver_log.txt"
    assert hub.log(key) == file.read_bytes()
    lines = hub.log(key).decode().splitlines()
    assert lines == [f"line {n}" for n in range(len(lines) - 1)] + ["the end"]


class TestAgentKilled:
    @pytest.mark.in_containers
    def test_the_run_goes_on_and_the_next_agent_knows_all_of_it(self, hub: FakeHub, tmp_path: Path) -> None:
        env, attempts = environ(hub, tmp_path), tmp_path / "attempts"
        key = hub.give(script(hub, COUNTING))
        with agent_process(env):
            hub.wait_log(key, b"line 10\n")
        before = child_pid(attempts, key)

        with agent_process(env):
            hub.wait_log(key, b"line 500\n")
            release_ranks(attempts, key)
            fact = hub.wait_done(key)
            hub.wait(lambda: key in hub.settled)

        check_whole(hub, attempts, key)
        assert child_pid(attempts, key) == before
        assert fact.members[0].exit_code == 0
        assert hub.output(key, "n") == str(hub.log(key).count(b"line")).encode()

    def test_what_ends_while_no_agent_lives_is_told_by_the_next(self, hub: FakeHub, tmp_path: Path) -> None:
        env, attempts = environ(hub, tmp_path), tmp_path / "attempts"
        key = hub.give(script(hub, COUNTING))
        with agent_process(env):
            hub.wait_log(key, b"line 10\n")
        release_ranks(attempts, key)
        wait_for_exit(attempts, key)

        with agent_process(env):
            fact = hub.wait_done(key)

        check_whole(hub, attempts, key)
        assert (fact.members[0].exit_code, fact.phase) == (0, "done")

    def test_it_asks_again_for_what_it_had_claimed_with_the_same_nonce(
        self, hub: FakeHub, tmp_path: Path
    ) -> None:
        value = script(hub, "print('hello')")
        key = hub.give(value)
        folder = tmp_path / "attempts" / f"{value.run}-1"
        folder.mkdir(parents=True)
        records.write(str(folder / "claim.json"), {"nonce": "a" * 32, "ports": []})
        hub.nonces[key] = "a" * 32

        with agent_process(environ(hub, tmp_path)):
            hub.wait_done(key)

        assert [claim["nonce"] for claim in hub.claims] == ["a" * 32]

    def test_an_order_without_a_child_gets_one(self, hub: FakeHub, tmp_path: Path) -> None:
        value = script(hub, "print('hello')")
        hub.slow_snapshots.add(value.snapshot)
        key = hub.give(value)
        with agent_process(environ(hub, tmp_path)):
            hub.wait_phase(key, "accepted")
        hub.slow_snapshots.clear()

        with agent_process(environ(hub, tmp_path)):
            hub.wait_done(key)

        assert len(hub.claims) == 1
        assert hub.log(key) == b"hello\n"

    def test_what_failed_before_it_had_a_child_is_not_tried_again(self, hub: FakeHub, tmp_path: Path) -> None:
        hub.auto_settle = False
        value = script(hub, "print('hello')")
        data = hub.blobs.pop(value.snapshot)
        key = hub.give(value)
        with agent_process(environ(hub, tmp_path)):
            hub.wait_done(key)
        hub.store(data)
        hub.facts.clear()

        with agent_process(environ(hub, tmp_path)):
            fact = hub.wait_done(key)
            reports = hub.reports
            hub.wait(lambda: hub.reports > reports + 2)

        assert (fact.error_kind, hub.facts[key].phase) == ("snapshot", "done")
        assert not (tmp_path / "attempts" / f"{value.run}-1" / "child.json").exists()

    def test_a_settled_attempt_is_not_told_again(self, hub: FakeHub, tmp_path: Path) -> None:
        key = hub.give(script(hub, "print('hello')"))
        with agent_process(environ(hub, tmp_path)):
            hub.wait(lambda: key in hub.settled and key in hub.facts)
            reports = hub.reports
            hub.wait(lambda: hub.reports > reports + 1)
        hub.facts.clear()

        with agent_process(environ(hub, tmp_path)):
            reports = hub.reports
            hub.wait(lambda: hub.reports > reports + 2)

        assert hub.facts == {}


class TestHubAway:
    def test_nothing_is_lost_and_nothing_doubled(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, COUNTING))
        hub.wait_log(key, b"line 10\n")

        hub.available = False
        refused = hub.refused
        hub.wait(lambda: hub.refused > refused + 3)
        release_ranks(agent.settings.attempts, key)
        wait_for_exit(agent.settings.attempts, key)
        hub.available = True

        fact = hub.wait_done(key)
        check_whole(hub, agent.settings.attempts, key)
        assert fact.members[0].exit_code == 0

    def test_it_is_asked_ever_more_rarely(self, hub: FakeHub, agent: Agent) -> None:
        hub.available = False
        hub.wait(lambda: hub.refused >= 4)

        assert hub.reports < 100
        hub.available = True
        before = hub.reports
        hub.wait(lambda: hub.reports > before)

    def test_a_hub_that_forgot_bytes_is_given_them_again(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(script(hub, COUNTING))
        hub.wait_log(key, b"line 100\n")
        with hub.changed:
            del hub.logs[*key, "70_driver_log.txt"][50:]

        release_ranks(agent.settings.attempts, key)

        hub.wait_done(key)
        check_whole(hub, agent.settings.attempts, key)


class TestChild:
    def test_outlives_its_starter_in_a_session_of_its_own(self, hub: FakeHub, tmp_path: Path) -> None:
        key = hub.give(script(hub, FOREVER))
        with agent_process(environ(hub, tmp_path)) as agent:
            hub.wait_log(key, b"up")
            group = os.getpgid(agent.pid)
            os.killpg(group, signal.SIGKILL)
            agent.wait(10)
        child = child_pid(tmp_path / "attempts", key)

        assert os.getsid(child) == child
        assert len(remaining_processes(key)) == 3
        hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")
        with agent_process(environ(hub, tmp_path)):
            hub.wait_done(key)
        assert remaining_processes(key) == set()

    @pytest.mark.in_containers
    def test_killed_itself_takes_its_ranks_along_and_is_told_as_our_failure(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        key = hub.give(script(hub, FOREVER, ranks=2))
        hub.wait_log(key, b"up", "70_driver_log_1.txt")
        hub.wait_log(key, b"up", "70_driver_log_0.txt")

        os.kill(child_pid(agent.settings.attempts, key), signal.SIGKILL)

        fact = hub.wait_done(key)
        assert remaining_processes(key) == set()
        assert fact.error_kind == "internal"
        assert fact.error.startswith("the process that supervised it was killed;")
        assert all(member.state == "ended" and member.ended_by_us for member in fact.members)

    def test_of_an_earlier_boot_is_told_as_a_restart(
        self, hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path
    ) -> None:
        first = start_agent()
        key = hub.give(script(hub, FOREVER))
        hub.wait_log(key, b"up")
        first.close()
        folder = first.settings.attempts / f"{key[0]}-1"
        child = json.loads((folder / "child.json").read_text())
        records.write(str(folder / "child.json"), {**child, "identity": f"another-boot/{child['identity']}"})
        pids = remaining_processes(key)
        termination.send_signal(pids, signal.SIGKILL)
        for pid in pids:
            wait_pid(pid)

        start_agent(settings(hub, tmp_path / "node"))

        fact = hub.wait_done(key)
        assert (fact.error_kind, fact.error) == ("internal", "the machine was restarted while it ran.")
        assert fact.members[0].state == "ended"

    def test_a_reused_pid_does_not_deceive(self) -> None:
        me = os.getpid()
        existing = proc.identity(me)
        assert existing

        assert proc.is_alive(me, existing)
        assert not proc.is_alive(me, existing + "1")
        assert not proc.is_alive(1, existing)


class TestClaim:
    def test_refused_leaves_nothing_behind(self, hub: FakeHub, agent: Agent) -> None:
        agent.wake("f" * 32, 1)
        hub.wait(lambda: hub.claims)

        key = hub.give(script(hub, "print('next')"))
        hub.wait_done(key)

        assert [path.name for path in agent.settings.attempts.iterdir()] == [f"{key[0]}-1"]

    def test_a_wake_up_for_what_is_already_here_reports_at_once_and_claims_nothing(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        key = hub.give(script(hub, FOREVER))
        hub.wait_log(key, b"up")
        hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")

        agent.wake(*key)

        hub.wait_done(key)
        assert len(hub.claims) == 1

    @pytest.mark.parametrize("times", [5])
    def test_many_wake_ups_at_once_are_one_claim(self, hub: FakeHub, agent: Agent, times: int) -> None:
        value = script(hub, "print('once')")
        key = value.run, 1
        hub.orders[key] = value

        for _ in range(times):
            agent.wake(*key)

        hub.wait_done(key)
        assert len(hub.claims) == 1
        assert hub.log(key) == b"once\n"
