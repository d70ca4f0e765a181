from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import environ, order, process, script
from tests.node.gangs import final, mpi_process, part
from tests.node.hub import FakeHub, Key
from tests.node.processes import agent_process, child_pid, remaining_processes, wait_pid
from trainhub_launch.log_names import PREPARATION_LOG
from trainhub_launch.plan import RANK_WRAPPER
from trainhub_launch.report import StopOrder
from trainhub_node.agent import Agent

PORT = "import os\nprint('port', os.environ['MASTER_PORT'])\n"
UNTIL_GO = "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
MAX_TRIES = 20
FOREVER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


def give(hub: FakeHub, code: str = PORT) -> Key:
    return hub.give(part(script(hub, code)))


def say_go(hub: FakeHub, key: Key, port: int) -> None:
    with hub.changed:
        hub.finals[key] = final(hub.orders[key], MASTER_PORT=str(port))


def file_of(attempts: Path, key: Key, name: str) -> Path:
    return attempts / f"{key[0]}-{key[1]}" / name


class TestReady:
    @pytest.mark.in_containers
    def test_tells_ports_and_versions_and_starts_nothing(self, hub: FakeHub, agent: Agent) -> None:
        key = give(hub)

        fact = hub.wait_phase(key, "ready")

        assert len(fact.ports) == len(set(fact.ports)) > 1
        assert fact.versions["python"].startswith("3.")
        assert [member.state for member in fact.members] == ["waiting"]
        assert all(values.ports for values in hub.history[key] if values.phase == "ready")

    @pytest.mark.in_containers
    def test_the_final_order_starts_what_it_says(self, hub: FakeHub, agent: Agent) -> None:
        key = give(hub)
        port = hub.wait_phase(key, "ready").ports[3]

        say_go(hub, key, port)

        fact = hub.wait_done(key)
        assert hub.log(key) == f"port {port}\n".encode()
        assert fact.members[0].exit_code == 0
        assert list(fact.phase_at) == ["accepted", "preparing", "ready", "running", "uploading", "done"]
        assert fact.ports == (port,)

    @staticmethod
    def _two_reports_later(hub: FakeHub) -> None:
        """Whatever a wake-up leads to has happened by then."""
        reports = hub.reports
        hub.wait(lambda: hub.reports > reports + 1)

    def test_wake_ups_before_and_after_it_change_nothing(self, hub: FakeHub, agent: Agent) -> None:
        key = give(hub, UNTIL_GO)
        port = hub.wait_phase(key, "ready").ports[0]
        agent.wake(*key)
        hub.wait(lambda: len(hub.claims) >= 2)
        assert hub.facts[key].phase == "ready"

        say_go(hub, key, port)
        for _ in range(5):
            agent.wake(*key)
        hub.wait_log(key, b"up")
        self._two_reports_later(hub)
        claims = len(hub.claims)
        agent.wake(*key)
        self._two_reports_later(hub)

        assert len(hub.claims) == claims
        assert len({claim["nonce"] for claim in hub.claims}) == 1
        file_of(agent.settings.attempts, key, "work/go").touch()
        assert hub.wait_done(key).members[0].exit_code == 0
        assert hub.log(key) == b"up\n"

    def test_what_cannot_be_prepared_ends_before_it_is_ready(self, hub: FakeHub, agent: Agent) -> None:
        value = script(hub, PORT)
        key = hub.give(part(replace(value, environment=replace(value.environment, python="/no/such/python"))))

        fact = hub.wait_done(key)

        assert (fact.error_kind, fact.error) == (
            "environment",
            "There is no Python at /no/such/python on this node.",
        )
        assert "ready" not in fact.phase_at

    @pytest.mark.parametrize("why", ["canceled", "gang"])
    def test_a_stop_ends_it_without_ranks(self, hub: FakeHub, agent: Agent, why: str) -> None:
        key = give(hub)
        hub.wait_phase(key, "ready")

        hub.stops[key] = StopOrder(*key, grace_s=5, why=why)

        fact = hub.wait_done(key)
        assert (fact.stopping, fact.error) == (why, "")
        assert [member.state for member in fact.members] == ["waiting"]
        assert hub.log(key, PREPARATION_LOG).rstrip().endswith(b"Stopped before the processes were started.")
        assert remaining_processes(key) == set()


class TestPorts:
    def test_are_kept_from_ready_on_and_given_back_unused(self, hub: FakeHub, agent: Agent) -> None:
        first = give(hub, FOREVER)
        of_first = hub.wait_phase(first, "ready").ports
        second = give(hub)
        of_second = hub.wait_phase(second, "ready").ports
        assert not set(of_first) & set(of_second)

        say_go(hub, first, of_first[0])
        hub.wait_log(first, b"up")
        later, ports = list[Key](), tuple[int, ...]()
        # Another node of the same machine, of another test, may be the first to take it.
        while of_first[1] not in ports and len(later) < MAX_TRIES:
            later.append(give(hub))
            ports = hub.wait_phase(later[-1], "ready").ports
            assert not {of_first[0], *of_second} & set(ports)
        assert of_first[1] in ports
        for key in (first, second, *later):
            hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")
            hub.wait_done(key)

    def test_outlive_the_agent(self, hub: FakeHub, tmp_path: Path) -> None:
        key = give(hub)
        with agent_process(environ(hub, tmp_path)):
            before = hub.wait_phase(key, "ready").ports
        hub.facts.clear()

        with agent_process(environ(hub, tmp_path)):
            after = hub.wait_phase(key, "ready").ports
            other = give(hub)
            assert not set(before) & set(hub.wait_phase(other, "ready").ports)
            for one in (key, other):
                hub.stops[one] = StopOrder(*one, grace_s=2, why="canceled")
                hub.wait_done(one)

        assert after == before


class TestAgentKilled:
    def test_while_the_snapshot_is_fetched(self, hub: FakeHub, tmp_path: Path) -> None:
        key = give(hub)
        hub.slow_snapshots.add(hub.orders[key].snapshot)
        with agent_process(environ(hub, tmp_path)):
            hub.wait_phase(key, "accepted")
        hub.slow_snapshots.clear()

        self.check_goes_on(hub, tmp_path, key)

        assert [claim["nonce"] for claim in hub.claims] == [hub.claims[0]["nonce"]] * 2

    def test_while_it_is_ready(self, hub: FakeHub, tmp_path: Path) -> None:
        key = give(hub)
        with agent_process(environ(hub, tmp_path)):
            hub.wait_phase(key, "ready")
        child = child_pid(tmp_path / "attempts", key)

        self.check_goes_on(hub, tmp_path, key)

        assert child_pid(tmp_path / "attempts", key) == child

    def test_before_it_has_found_ports(self, hub: FakeHub, tmp_path: Path) -> None:
        """The child is ready by itself; the agent dies before it looks."""
        key = give(hub)
        with agent_process(environ(hub, tmp_path)):
            hub.wait_phase(key, "ready")
        path = file_of(tmp_path / "attempts", key, "claim.json")
        claim = json.loads(path.read_text())
        path.write_text(json.dumps({name: claim[name] for name in ("nonce", "ports")} | {"held": []}))

        self.check_goes_on(hub, tmp_path, key)

    def test_once_the_final_order_is_here_the_child_needs_none(self, hub: FakeHub, tmp_path: Path) -> None:
        key = give(hub)
        with agent_process(environ(hub, tmp_path)):
            port = hub.wait_phase(key, "ready").ports[0]
        value = final(hub.orders[key], MASTER_PORT=str(port))
        child = child_pid(tmp_path / "attempts", key)
        path = file_of(tmp_path / "attempts", key, "go.json")

        # As the agent would, were it not killed before it calls the child.
        path.with_suffix(".new").write_text(json.dumps(value.to_json()))
        path.with_suffix(".new").rename(path)
        wait_pid(child)

        assert file_of(tmp_path / "attempts", key, "logs/70_driver_log.txt").read_text() == f"port {port}\n"
        with agent_process(environ(hub, tmp_path)):
            assert hub.wait_done(key).members[0].exit_code == 0

    @staticmethod
    def check_goes_on(hub: FakeHub, folder: Path, key: Key) -> None:
        hub.facts.clear()
        with agent_process(environ(hub, folder)):
            port = hub.wait_phase(key, "ready").ports[0]
            say_go(hub, key, port)
            assert hub.wait_done(key).members[0].exit_code == 0
        assert hub.log(key) == f"port {port}\n".encode()


class TestChildKilled:
    def test_while_ready_is_told_as_our_failure(self, hub: FakeHub, agent: Agent) -> None:
        key = give(hub)
        hub.wait_phase(key, "ready")

        os.kill(child_pid(agent.settings.attempts, key), signal.SIGKILL)

        fact = hub.wait_done(key)
        assert fact.error_kind == "internal"
        assert fact.error.startswith("the process that supervised it was killed;")


class TestVersions:
    def test_are_those_of_the_environment_and_nothing_of_it_is_imported(
        self, hub: FakeHub, agent: Agent, tmp_path: Path
    ) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
        (site,) = (tmp_path / "env").glob("lib/python3*/site-packages")
        for name in ("torch-2.13.0+cpu", "tensorflow_cpu-2.21.0", "numpy-2.4.0", "somebody-1.0"):
            (site / f"{name}.dist-info").mkdir()
        (site / "horovod-0.28.1-py3.11.egg-info").touch()
        (site / "torch.py").write_text("raise SystemExit('imported')\n")
        value = script(hub, PORT)
        key = hub.give(
            part(
                replace(
                    value, environment=replace(value.environment, python=str(tmp_path / "env/bin/python"))
                )
            )
        )

        fact = hub.wait_phase(key, "ready")

        versions = {"torch": "2.13.0+cpu", "tensorflow": "2.21.0", "numpy": "2.4.0", "horovod": "0.28.1"}
        assert fact.versions == versions | {"python": ".".join(map(str, sys.version_info[:3]))}
        assert fact.phase_at["ready"] - fact.phase_at["preparing"] < 2
        hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")
        hub.wait_done(key)


class TestServing:
    def test_a_node_whose_ranks_only_serve_keeps_them_until_the_hub_ends_them(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        server = process(1, ("python", "ps.py"), decides=False, of=2)
        key = hub.give(part(order(hub, {"ps.py": FOREVER}, server), head=False))
        say_go(hub, key, hub.wait_phase(key, "ready").ports[0])
        hub.wait_log(key, b"up", "70_driver_log_1.txt")
        reports = hub.reports
        hub.wait(lambda: hub.reports > reports + 5)
        assert hub.facts[key].members[0].state == "running"

        hub.stops[key] = StopOrder(*key, grace_s=5, why="served")

        fact = hub.wait_done(key)
        assert (fact.stopping, fact.error) == ("served", "")
        assert (fact.members[0].signal, fact.members[0].ended_by_us) == (signal.SIGTERM, True)


@pytest.mark.parametrize(
    ("head", "missing"),
    [(True, "there is no mpirun on its PATH"), (False, "there is no orted and no prted on its PATH")],
)
def test_a_node_without_open_mpi_ends_the_run_before_any_rank(
    hub: FakeHub, start_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch, head: bool, missing: str
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    start_agent()
    value = order(
        hub,
        {"train.py": PORT},
        mpi_process(0, 0, ("python", "train.py"), of=2),
        launcher=("mpirun", RANK_WRAPPER) if head else (),
    )

    fact = hub.wait_done(hub.give(part(value, head=head)))

    assert fact.error_kind == "launch"
    assert fact.error.startswith(
        f"node here has no Open MPI: {missing}. Install it there (Debian: openmpi-bin)"
    )
    assert "ready" not in fact.phase_at
