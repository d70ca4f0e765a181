"""Builds of environments for runs, which a node installs from the hub, and what becomes of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.node.builders import environ, script
from tests.node.hub import FakeHub
from tests.node.launch.test_hub_index import OrderIndex, index, locked, no_settings, ordered
from tests.node.processes import agent_process, remaining_processes
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.report import StopOrder
from trainhub_node.agent import Agent
from trainhub_node.environments import interpreter
from trainhub_node.launch import cache

__all__ = ["index", "no_settings"]
pytestmark = pytest.mark.slow
USE = "import sys, tinylib\nprint(tinylib.VERSION, sys.prefix)\n"
BEGINS = b"uv venv "


@pytest.fixture
def spec(index: OrderIndex) -> EnvironmentSpec:
    index.add("tinylib")
    return locked(index, "tinylib")


class TestBuild:
    def test_is_done_once_and_its_log_is_seen(
        self, hub: FakeHub, agent: Agent, index: OrderIndex, spec: EnvironmentSpec
    ) -> None:
        first = hub.give(ordered(hub, index, spec, USE))
        hub.wait_done(first, 120)

        second = hub.give(ordered(hub, index, spec, USE))
        hub.wait_done(second, 20)

        folder = agent.settings.environments / spec.digest
        assert hub.log(first) == hub.log(second) == f"1.0 {folder}\n".encode()
        assert BEGINS in hub.log(first, ENVIRONMENT_LOG)
        assert ENVIRONMENT_LOG not in hub.facts[second].logs

    def test_two_runs_at_once_wait_for_one_build(
        self, hub: FakeHub, agent: Agent, index: OrderIndex, spec: EnvironmentSpec
    ) -> None:
        index.is_silent = True
        keys = [hub.give(ordered(hub, index, spec, USE)) for _ in range(2)]
        waits = b"Waiting for another run on this node that is building tiny."
        hub.wait(lambda: any(waits in hub.log(key, PREPARATION_LOG) for key in keys), 60)
        index.is_silent = False

        for key in keys:
            hub.wait_done(key, 120)

        built = [key for key in keys if ENVIRONMENT_LOG in hub.facts[key].logs]
        assert len(built) == 1

    def test_goes_on_without_the_agent(
        self, hub: FakeHub, tmp_path: Path, index: OrderIndex, spec: EnvironmentSpec
    ) -> None:
        index.is_silent = True
        key = hub.give(ordered(hub, index, spec, USE))
        with agent_process(environ(hub, tmp_path / "node")):
            hub.wait_log(key, BEGINS, ENVIRONMENT_LOG, 60)

        index.is_silent = False
        with agent_process(environ(hub, tmp_path / "node")):
            hub.wait_done(key, 120)

        assert hub.log(key).startswith(b"1.0 ")
        assert hub.log(key, ENVIRONMENT_LOG).count(BEGINS) == 1

    def test_can_be_canceled(
        self, hub: FakeHub, agent: Agent, index: OrderIndex, spec: EnvironmentSpec
    ) -> None:
        index.is_silent = True
        key = hub.give(ordered(hub, index, spec, USE))
        hub.wait_log(key, BEGINS, ENVIRONMENT_LOG, 60)

        hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")

        fact = hub.wait_done(key, 20)
        assert (fact.stopping, fact.error) == ("canceled", "")
        assert remaining_processes(key) == set()
        assert not (agent.settings.environments / spec.digest).exists()

    def test_half_made_by_a_killed_child_is_made_anew(
        self, hub: FakeHub, agent: Agent, index: OrderIndex, spec: EnvironmentSpec
    ) -> None:
        folder = agent.settings.environments / spec.digest
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").write_text("broken")

        key = hub.give(ordered(hub, index, spec, USE))

        hub.wait_done(key, 120)
        assert hub.log(key).startswith(b"1.0 ")


class TestFromAnOlderHub:
    """Orders without a lock, which pip resolves."""

    def test_that_fails_says_pips_last_word_and_leaves_nothing(self, hub: FakeHub, agent: Agent) -> None:
        spec = EnvironmentSpec("tiny", "1", "venv", requirements=("./no-such-package-here",))
        key = hub.give(script(hub, USE, environment=spec))

        fact = hub.wait_done(key, 120)

        assert fact.error_kind == "environment"
        assert fact.error.startswith("pip could not install ./no-such-package-here: ERROR: ")
        assert [member.state for member in fact.members] == ["waiting"]
        assert not (agent.settings.environments / spec.digest).exists()

    def test_is_refused_where_it_would_build_something_that_cannot_train(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        spec = EnvironmentSpec("tiny", "1", "venv", requirements=("horovod==0.28.1",))
        fact = hub.wait_done(hub.give(script(hub, USE, environment=spec)), 120)
        assert fact.error_kind == "environment"
        assert "start this node's agent with PIP_FIND_LINKS" in fact.error
        assert not (agent.settings.environments / spec.digest).exists()


class TestCache:
    def test_throws_away_what_was_used_longest_ago_but_never_what_is_in_use(
        self, hub: FakeHub, agent: Agent, index: OrderIndex, spec: EnvironmentSpec
    ) -> None:
        stays = USE + "import time\nprint('up', flush=True)\ntime.sleep(600)"
        key = hub.give(ordered(hub, index, spec, stays))
        hub.wait_log(key, b"up", timeout_s=120)
        settings = agent.settings
        folder = settings.environments / spec.digest
        tight = type(settings)(**{**vars(settings), "cache_bytes": 1})

        assert folder not in cache.trim(tight)
        assert (folder / interpreter.MARKER).exists()

        hub.stops[key] = StopOrder(*key, grace_s=1, why="canceled")
        hub.wait_done(key)
        # Its modules may still be compiled, which is a use, too.
        hub.wait(lambda: folder in cache.trim(tight), 120)
        assert not folder.exists()


def test_an_unknown_interpreter_is_named(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(
        script(hub, USE, environment=EnvironmentSpec("system", "3.99", "system", python="/no/such/python"))
    )

    fact = hub.wait_done(key)

    assert (fact.error_kind, fact.error) == (
        "environment",
        "There is no Python at /no/such/python on this node.",
    )


def test_the_build_is_told_nothing_of_the_agents_own_secrets(
    hub: FakeHub, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_SECRET", "x")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    key = hub.give(script(hub, "print('up', flush=True)\n__import__('time').sleep(600)"))
    hub.wait_log(key, b"up")
    (child,) = (pid for pid in remaining_processes(key) if os.getsid(pid) == pid)

    env = Path(f"/proc/{child}/environ").read_bytes()

    os.kill(child, signal.SIGKILL)
    hub.wait_done(key)
    assert b"AGENT_SECRET" not in env
