"""Orders to build an environment: nothing runs afterwards, and what ends a build leaves nothing behind."""

from __future__ import annotations

import os
import signal
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.node.builders import environ
from tests.node.hub import FakeHub, Key
from tests.node.launch.test_hub_index import TICKET, OrderIndex, index, locked, no_settings, ordered
from tests.node.launch.test_locked_environments import USE
from tests.node.processes import agent_process, child_pid, remaining_processes, wait_for_exit
from trainhub_launch.errors import WireError
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG
from trainhub_launch.machine import BUILDS
from trainhub_launch.order import MAKE, EnvironmentSpec, NodeOrder, OrderKind
from trainhub_launch.plan import NodeCommand
from trainhub_launch.report import StopOrder
from trainhub_launch.states import StopReason
from trainhub_node.agent import Agent
from trainhub_node.intake import orders

__all__ = ["index", "no_settings"]
SYSTEM = EnvironmentSpec("system", "", "system")
TO_MAKE = EnvironmentSpec("a", "1", MAKE)
MADE = {
    "kind": "dockerfile",
    "dockerfile": "FROM a",
    "upload": "http://hub:8000/api/v1/node/builds/0",
    "ticket": "thu_0",
    "timeout_s": 60.0,
    "max_bytes": 1000,
}


def build_order(environment: EnvironmentSpec, index: OrderIndex | None = None) -> NodeOrder:
    """`index`: the hub's, with the packages of the lock."""
    return NodeOrder(
        run=uuid.uuid4().hex,
        attempt=1,
        command=NodeCommand("here", 0, "127.0.0.1", ()),
        environment=environment,
        snapshot="",
        snapshot_size=0,
        kind=OrderKind.BUILD,
        package_index=index.order_url if index else "",
        package_ticket=TICKET if index else "",
    )


def waiting_build(hub: FakeHub, index: OrderIndex) -> tuple[Key, EnvironmentSpec]:
    """A build that waits for an index that never answers."""
    index.add("tinylib")
    spec = locked(index, "tinylib")
    index.is_silent = True
    key = hub.give(build_order(spec, index))
    hub.wait_log(key, b"--require-hashes", ENVIRONMENT_LOG, 60)
    return key, spec


@pytest.mark.slow
class TestBuild:
    def test_makes_the_environment_and_the_next_run_starts_with_it(
        self, hub: FakeHub, agent: Agent, index: OrderIndex
    ) -> None:
        index.add("tinylib")
        spec = locked(index, "tinylib")
        key = hub.give(build_order(spec, index))
        fact = hub.wait_done(key, 120)
        assert (fact.error, fact.members, fact.outputs) == ("", (), ())
        assert list(fact.phase_at) == ["accepted", "preparing", "running", "uploading", "done"]
        assert set(fact.logs) == {ENVIRONMENT_LOG, PREPARATION_LOG}
        assert b"uv pip install" in hub.log(key, ENVIRONMENT_LOG)
        assert not (agent.settings.attempts / f"{key[0]}-1" / "work").exists()
        assert hub.heartbeat is not None
        assert BUILDS in hub.heartbeat.capabilities

        # Neither a second order nor a run needs the index again.
        index.is_silent = True
        again = hub.wait_done(hub.give(build_order(spec, index)), 30)
        assert (again.error, set(again.logs)) == ("", set())
        run = hub.give(ordered(hub, index, spec, USE))
        hub.wait_done(run, 60)
        assert hub.log(run) == b"1.0\n"

    def test_that_fails_says_why(self, hub: FakeHub, agent: Agent, index: OrderIndex) -> None:
        index.add("tinylib")
        fact = hub.wait_done(hub.give(build_order(locked(index, "tinylib", sha256="0" * 64), index)), 120)
        assert fact.error_kind == "environment"
        assert "running" not in fact.phase_at
        assert "could not be installed" in fact.error

    def test_that_is_canceled_ends_with_all_its_processes(
        self, hub: FakeHub, agent: Agent, index: OrderIndex
    ) -> None:
        key, spec = waiting_build(hub, index)
        hub.stops[key] = StopOrder(*key, grace_s=10, why=StopReason.CANCELED)
        fact = hub.wait_done(key, 30)
        assert (fact.stopping, fact.error, "running" in fact.phase_at) == ("canceled", "", False)
        assert not remaining_processes(key)
        assert not (agent.settings.environments / spec.digest).exists()

    def test_whose_agent_and_child_are_killed_is_made_by_the_next(
        self, hub: FakeHub, tmp_path: Path, index: OrderIndex
    ) -> None:
        env = environ(hub, tmp_path / "node") | {"PIP_CONFIG_FILE": "/dev/null"}
        attempts = tmp_path / "node" / "attempts"
        with agent_process(env):
            key, spec = waiting_build(hub, index)
        os.kill(child_pid(attempts, key), signal.SIGKILL)
        wait_for_exit(attempts, key)
        half_made = next(tmp_path.rglob(spec.digest))
        index.is_silent = False
        with agent_process(env):
            fact = hub.wait_done(key, 60)
            assert fact.error_kind == "internal"
            assert "was killed" in fact.error
            assert not remaining_processes(key)
            assert not (half_made / "trainhub-complete").exists()
            next_one = hub.wait_done(hub.give(build_order(spec, index)), 120)
        assert next_one.error == ""
        assert b"uv pip install" in hub.log((next_one.run, 1), ENVIRONMENT_LOG)


class TestIntake:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"kind": "fetch"}, "kind 'fetch' is not known to this agent; upgrade it"),
            ({"snapshot": "a" * 64}, "names a snapshot"),
            ({"values": {"launch:token": "x"}}, "has processes, values or a second order"),
            ({"command": NodeCommand("here", 0, "", (), launcher=("mpirun",))}, "has processes"),
            ({"go": False}, "a second order"),
            ({"environment": SYSTEM}, "names an interpreter"),
            ({"make": MADE}, "only in an order to build an environment of kind make"),
            ({"environment": TO_MAKE, "make": {**MADE, "upload": "file:///etc"}}, "make.upload"),
            ({"environment": TO_MAKE, "make": {**MADE, "ticket": "a b"}}, "make.ticket"),
            ({"environment": TO_MAKE, "make": {**MADE, "timeout_s": "x"}}, "make.timeout_s"),
            ({"environment": TO_MAKE}, "not an order"),
        ],
    )
    def test_refuses_what_a_build_cannot_have(self, changes: dict[str, Any], words: str) -> None:
        order = replace(build_order(EnvironmentSpec("a", "1", "venv")), **changes)
        with pytest.raises(WireError, match=words):
            orders.parse(order.to_json(), order.run, 1)

    def test_an_order_to_make_something_says_what_and_where_to(self) -> None:
        order = replace(build_order(TO_MAKE), make=MADE)
        assert orders.parse(order.to_json(), order.run, 1) == order

    def test_an_order_of_a_run_looks_as_before(self) -> None:
        order = replace(build_order(SYSTEM), kind=OrderKind.RUN, snapshot="a" * 64)
        assert "kind" not in order.to_json()
        assert orders.parse(order.to_json(), order.run, 1) == order
