from __future__ import annotations

import json
import os
import pwd
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.attacks.server.separated import needs_root, passable_python, uid_of
from tests.node.accounts import as_account
from tests.node.builders import environ
from tests.node.gangs import final, mpi_parts
from tests.node.hub import FakeHub, Key
from tests.node.processes import remaining_processes
from tests.node.spaces import Space, agent_in, two_spaces
from trainhub_launch.log_names import LAUNCHER_LOG
from trainhub_launch.report import AttemptFact, StopOrder
from trainhub_node import proc

pytestmark = pytest.mark.mpi
DUMP = "import json, os, sys\nprint(json.dumps([dict(os.environ), os.uname().nodename]))\n"
FOREVER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


def log_of(rank: int) -> str:
    return f"70_driver_log_{rank}.txt"


def cmdline(pid: int) -> list[bytes]:
    return (proc.read(f"/proc/{pid}/cmdline") or b"").split(b"\0")


class Bench:
    """A hub for each of two hosts, and their agents; what the real hub carries between nodes, this does."""

    def __init__(self, hubs: list[FakeHub], spaces: list[Space]) -> None:
        self.hubs = hubs
        self.spaces = spaces

    def ready(self, code: str, *, grace_s: int = 5) -> list[Key]:
        keys = mpi_parts(self.hubs, [space.address for space in self.spaces], code, grace_s=grace_s)
        self.each(keys, lambda hub, key: hub.wait_phase(key, "ready"))
        return keys

    def run(self, code: str, *, grace_s: int = 5) -> list[Key]:
        """Up to mpirun and its daemon."""
        keys = self.ready(code, grace_s=grace_s)
        self.each(keys, lambda hub, key: hub.finals.update({key: final(hub.orders[key], MASTER_PORT="6105")}))
        head, other = self.hubs
        head.wait(lambda: head.facts[keys[0]].daemons)
        (call,) = head.facts[keys[0]].daemons
        assert call.host == self.spaces[1].address
        other.daemons[keys[1]] = call.argv
        return keys

    def each(self, keys: list[Key], do: Callable[[FakeHub, Key], object]) -> None:
        for hub, key in zip(self.hubs, keys, strict=True):
            do(hub, key)

    def wait_up(self, keys: list[Key]) -> None:
        for rank in range(4):
            self.hubs[rank // 2].wait_log(keys[rank // 2], b"up", log_of(rank))

    def done(self, keys: list[Key]) -> list[AttemptFact]:
        return [hub.wait_done(key, 30) for hub, key in zip(self.hubs, keys, strict=True)]


@contextmanager
def two_agents(**env: str) -> Iterator[Bench]:
    with ExitStack() as stack:
        address, spaces = stack.enter_context(two_spaces())
        hubs = [stack.enter_context(FakeHub(address).serving()) for _ in spaces]
        for hub, space in zip(hubs, spaces, strict=True):
            stack.enter_context(agent_in(space, environ(hub, space.folder / "node") | env))
        yield Bench(hubs, spaces)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with two_agents() as value:
        yield value


def test_ranks_of_another_account_run_on_both_hosts() -> None:
    with two_agents(TRAINHUB_NODE_RUN_AS="nobody", TRAINHUB_NODE_PYTHON="/usr/bin/python3") as bench:
        keys = bench.run("import os\nprint(os.getuid())\n")

        facts = bench.done(keys)

        assert [member.exit_code for fact in facts for member in fact.members] == [0, 0, 0, 0], facts
        message = {bench.hubs[rank // 2].log(keys[rank // 2], log_of(rank)) for rank in range(4)}
        assert message == {f"{pwd.getpwnam('nobody').pw_uid}\n".encode()}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can separate runs")
def test_ranks_of_accounts_of_their_own_run_on_both_hosts_and_are_cancelled() -> None:
    with two_agents(TRAINHUB_NODE_RUN_AS="range", TRAINHUB_NODE_PYTHON="/usr/bin/python3") as bench:
        keys = bench.run("import os\nprint(os.getuid(), os.listdir('/dev/shm') is None)\n" + FOREVER)
        bench.wait_up(keys)

        bench.hubs[0].stops[keys[0]] = StopOrder(*keys[0], grace_s=5, why="canceled")
        bench.hubs[1].stops[keys[1]] = StopOrder(*keys[1], grace_s=5, why="canceled")

        facts = bench.done(keys)
        assert all(member.ended_by_us for fact in facts for member in fact.members), facts
        for node in range(2):
            uids = {bench.hubs[node].log(keys[node], log_of(2 * node + rank)).split()[0] for rank in range(2)}
            assert len(uids) == 1
            assert int(uids.pop()) >= 1_900_000_000
        assert remaining_processes(keys[0]) == set()


@needs_root
def test_ranks_of_agents_that_are_not_root_run_on_both_hosts_and_are_cancelled() -> None:
    with ExitStack() as stack:
        address, spaces = stack.enter_context(two_spaces())
        hubs = [stack.enter_context(FakeHub(address).serving()) for _ in spaces]
        python = passable_python(spaces[0].folder)
        own = {
            "TRAINHUB_NODE_PYTHON": "/usr/bin/python3",
            "LD_LIBRARY_PATH": str(Path(python).parent.parent / "lib"),
        }
        for hub, space in zip(hubs, spaces, strict=True):
            os.chown(space.folder, uid_of("daemon"), -1)
            env = environ(hub, space.folder / "node") | own | {"HOME": str(space.folder)}
            stack.enter_context(agent_in(space, env, [*as_account("daemon"), python]))
        bench = Bench(hubs, spaces)
        keys = bench.run("import os\nprint(os.getuid(), os.listdir('/tmp'))\n" + FOREVER)
        bench.wait_up(keys)
        bench.each(keys, lambda hub, key: hub.stops.update({key: StopOrder(*key, grace_s=5, why="canceled")}))
        facts = bench.done(keys)
        assert all(member.ended_by_us for fact in facts for member in fact.members), facts
        for rank in range(4):
            said = bench.hubs[rank // 2].log(keys[rank // 2], log_of(rank)).split()
            assert said[0] == str(uid_of("daemon")).encode()
        assert remaining_processes(keys[0]) == set()


class TestTwoByTwo:
    def test_each_rank_runs_on_its_host_as_planned(self, bench: Bench) -> None:
        keys = bench.run(DUMP)

        facts = bench.done(keys)

        assert [member.exit_code for fact in facts for member in fact.members] == [0, 0, 0, 0], facts
        for rank in range(4):
            node = rank // 2
            env, host = json.loads(bench.hubs[node].log(keys[node], log_of(rank)))
            assert host == bench.spaces[node].name
            assert (env["OMPI_COMM_WORLD_RANK"], env["RANK"], env["OMPI_COMM_WORLD_SIZE"]) == (
                str(rank),
                str(rank),
                "4",
            )
            assert env["OMPI_COMM_WORLD_LOCAL_RANK"] == str(rank % 2)
            assert env["PYTHONPATH"] == f"{bench.spaces[node].folder}/node/sites"
            assert env["MASTER_PORT"] == "6105"
        assert [(fact.error, fact.stopping, fact.warnings) for fact in facts] == [("", "", ())] * 2
        assert [hub.log(key, LAUNCHER_LOG) for hub, key in zip(bench.hubs, keys, strict=True)] == [b"", b""]
        assert remaining_processes(keys[0]) == set()

    @pytest.mark.parametrize("failing", [1, 3])
    def test_one_failed_rank_ends_all_and_only_it_is_to_blame(self, bench: Bench, failing: int) -> None:
        keys = bench.run(
            f"import os, time\nif os.environ['RANK'] == '{failing}': raise SystemExit(7)\ntime.sleep(600)\n"
        )

        members = [member for fact in bench.done(keys) for member in fact.members]

        assert [(one.rank, one.exit_code) for one in members if not one.ended_by_us] == [(failing, 7)]
        assert min(members, key=lambda one: one.ended_at or 0.0).rank == failing
        assert [hub.facts[key].error for hub, key in zip(bench.hubs, keys, strict=True)] == ["", ""]
        assert remaining_processes(keys[0]) == set()

    def test_mpirun_killed_ends_the_other_host_too(self, bench: Bench) -> None:
        keys = bench.run(FOREVER)
        bench.wait_up(keys)
        (mpirun,) = [
            one.pid
            for one in proc.list_processes()
            if cmdline(one.pid)[:1] == [b"mpirun"] and one.pid in remaining_processes(keys[0])
        ]

        os.kill(mpirun, signal.SIGKILL)

        facts = bench.done(keys)
        assert all(member.ended_by_us for fact in facts for member in fact.members)
        assert remaining_processes(keys[0]) == set()

    def test_a_host_cut_off_is_ended_by_sigkill_as_mpirun_would_not_end(self, bench: Bench) -> None:
        keys = bench.run(FOREVER, grace_s=2)
        bench.wait_up(keys)
        began = time.monotonic()

        bench.spaces[1].cut()
        bench.hubs[0].stops[keys[0]] = StopOrder(*keys[0], grace_s=2, why="gang")

        fact = bench.hubs[0].wait_done(keys[0])
        assert time.monotonic() - began < 30
        assert all(member.ended_by_us for member in fact.members)
        bench.spaces[1].heal()
        bench.hubs[1].stops[keys[1]] = StopOrder(*keys[1], grace_s=2, why="gang")
        assert all(member.ended_by_us for member in bench.hubs[1].wait_done(keys[1]).members)
        assert remaining_processes(keys[0]) == set()

    def test_a_daemon_with_arguments_of_somebody_elses_is_refused(self, bench: Bench) -> None:
        keys = bench.ready(FOREVER)
        bench.each(keys, lambda hub, key: hub.finals.update({key: final(hub.orders[key])}))
        bench.hubs[1].daemons[keys[1]] = ("orted", "-mca", "orte_fork_agent", "/bin/sh")

        fact = bench.hubs[1].wait_done(keys[1])

        assert (
            fact.error
            == "mpirun asked for orted with the parameter 'orte_fork_agent', which this node does not allow."
        )
        assert "running" not in fact.phase_at
        bench.hubs[0].stops[keys[0]] = StopOrder(*keys[0], grace_s=2, why="gang")
        assert [member.state for member in bench.hubs[0].wait_done(keys[0]).members] == ["waiting"] * 2
        assert remaining_processes(keys[0]) == set()
