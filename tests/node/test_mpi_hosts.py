from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.node.builders import environ
from tests.node.gangs import final, mpi_parts
from tests.node.hub import FakeHub, Key
from tests.node.processes import left
from tests.node.spaces import Space, agent_in, two_spaces
from trainhub_launch.report import AttemptFact
from trainhub_node.rundir import LAUNCHER_LOG

pytestmark = pytest.mark.mpi
DUMP = "import json, os, sys\nprint(json.dumps([dict(os.environ), os.uname().nodename]))\n"


class Bench:
    """A hub for each of two hosts, and their agents; what the real hub carries between nodes, `relay` carries."""

    def __init__(self, hubs: list[FakeHub], spaces: list[Space]) -> None:
        self.hubs = hubs
        self.spaces = spaces

    def run(self, code: str, *, per_node: int = 2, grace_s: int = 5) -> list[Key]:
        """Up to mpirun and its daemon."""
        keys = mpi_parts(self.hubs, [space.address for space in self.spaces], code, per_node=per_node, grace_s=grace_s)
        self.each(keys, lambda hub, key: hub.wait_phase(key, "ready"))
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

    def done(self, keys: list[Key]) -> list[AttemptFact]:
        return [hub.wait_done(key, 30) for hub, key in zip(self.hubs, keys, strict=True)]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ExitStack() as stack:
        address, spaces = stack.enter_context(two_spaces())
        hubs = [stack.enter_context(FakeHub(address).serving()) for _ in spaces]
        for hub, space in zip(hubs, spaces, strict=True):
            stack.enter_context(agent_in(space, environ(hub, space.folder / "node")))
        yield Bench(hubs, spaces)


class TestTwoByTwo:
    def test_each_rank_runs_on_its_host_as_planned(self, bench: Bench) -> None:
        keys = bench.run(DUMP)

        facts = bench.done(keys)

        assert [member.exit_code for fact in facts for member in fact.members] == [0, 0, 0, 0], facts
        for rank in range(4):
            node = rank // 2
            env, host = json.loads(bench.hubs[node].log(keys[node], f"70_driver_log_{rank}.txt"))
            assert host == bench.spaces[node].name
            assert (env["OMPI_COMM_WORLD_RANK"], env["RANK"], env["OMPI_COMM_WORLD_SIZE"]) == (str(rank), str(rank), "4")
            assert env["OMPI_COMM_WORLD_LOCAL_RANK"] == str(rank % 2)
        assert [(fact.error, fact.stopping, fact.warnings) for fact in facts] == [("", "", ())] * 2
        assert [hub.log(key, LAUNCHER_LOG) for hub, key in zip(bench.hubs, keys, strict=True)] == [b"", b""]
        assert left(keys[0]) == set()
