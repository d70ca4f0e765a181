"""Where the control groups of attempts are, on machines with version 2 only, and that their limits hold."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.node import cgroup_v2
from tests.node.cgroup_v2 import ROOT, in_group, processes, sleeper
from trainhub_node.isolation import cgroup_place, cgroups
from trainhub_node.isolation.cgroups import CONTROLLERS, V2, Group, Limits

pytestmark = cgroup_v2.needs_v2
MIB, GIB = 2**20, 2**30


@pytest.fixture
def group() -> Iterator[Path]:
    """A group of the test, to whose children an administrator has delegated everything."""
    outer = ROOT / f"tests-{os.getpid()}"
    outer.mkdir()
    for folder in (ROOT, outer):
        cgroups.write(f"{folder}/cgroup.subtree_control", "+memory +pids +cpu")
    yield outer / "agent"
    cgroup_v2.remove_tree(outer)


def find() -> dict[str, Any]:
    place = cgroup_place.find_place("an agent of the tests", 2 * GIB)
    parents = set(place.parents.values())
    return {
        "controllers": sorted(place.parents),
        "parent": parents.pop() if parents else "",
        "missing": list(place.missing),
    }


class TestPlace:
    def test_an_agent_of_its_own_group_moves_all_processes_there_into_a_child(self, group: Path) -> None:
        with sleeper(group) as neighbour:
            place = in_group(group, find)

            assert (place["controllers"], place["missing"]) == (sorted(CONTROLLERS), [])
            assert Path(place["parent"]).parent == group / "trainhub"
            assert processes(group) == []
            assert processes(group / "trainhub-agent") == [neighbour]

    def test_all_attempts_together_leave_memory_and_cores_to_the_machine(self, group: Path) -> None:
        folder = Path(in_group(group, find)["parent"])
        assert int((folder / "memory.max").read_text()) == 2 * GIB - 512 * MIB
        cores = os.cpu_count() or 1
        assert {int((level / "cpu.weight").read_text()) for level in (folder, folder.parent)} == {100 * cores}

    def test_the_next_agent_that_starts_from_there_has_the_same_place(self, group: Path) -> None:
        first = in_group(group, find)
        assert in_group(group / "trainhub-agent", find) == first
        assert not (group / "trainhub-agent" / "trainhub-agent").exists()

    def test_an_agent_that_runs_as_a_unit_has_it_beside_the_units(self) -> None:
        unit = ROOT / "system.slice" / "agent-of-the-tests.service"
        try:
            place = in_group(unit, find)
        finally:
            unit.rmdir()
        assert Path(place["parent"]).parent == ROOT / "trainhub.slice"
        assert place["controllers"] == sorted(CONTROLLERS)
        cgroup_place.discard_place({"memory": place["parent"]})

    def test_a_container_has_it_in_its_own_group(self, group: Path) -> None:
        def find_in_container() -> dict[str, Any]:
            cgroup_v2.become_container()
            return find()

        with sleeper(group) as entrypoint:
            place = in_group(group, find_in_container)
            assert processes(group / "trainhub-agent") == [entrypoint]
        assert (place["controllers"], place["missing"]) == (sorted(CONTROLLERS), [])
        assert Path(place["parent"]).parent == ROOT / "trainhub"
        assert (group / "trainhub" / Path(place["parent"]).name).is_dir()

    def test_a_controller_that_is_not_delegated_is_missing_alone(self, group: Path) -> None:
        cgroups.write(f"{group.parent}/cgroup.subtree_control", "-cpu")
        place = in_group(group, find)
        assert place["controllers"] == ["memory", "pids"]
        assert place["missing"] == [f"the controller cpu is not delegated to {group}"]

    def test_an_agent_without_rights_has_none_and_says_so(self, group: Path) -> None:
        def find_as_nobody() -> dict[str, Any]:
            os.setresuid(65534, 65534, 65534)
            return find()

        assert in_group(group, find_as_nobody) == {
            "controllers": [],
            "parent": "",
            "missing": ["the agent may not make control groups"],
        }


@pytest.fixture
def place(group: Path) -> dict[str, Any]:
    folder = in_group(group, find)["parent"]
    return {"version": V2, "parents": dict.fromkeys(CONTROLLERS, folder)}


def run_in(group: Group, code: str) -> int:
    """Runs the code in the group. Returns how it ended, as `os.waitstatus_to_exitcode` does."""
    pid = os.fork()
    if pid == 0:
        try:
            group.enter()
            exec(code, {"os": os, "time": time})  # noqa: S102
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class TestGroup:
    def test_memory_ends_at_the_limit_and_the_group_tells_the_kill_and_the_peak(
        self, place: dict[str, Any]
    ) -> None:
        group = Group(place, "greedy", Limits(memory=32 * MIB, cpus=None, ranks=1))
        neighbour = Group(place, "neighbour", Limits(memory=32 * MIB, cpus=None, ranks=1))
        assert run_in(group, "held = [bytearray(2**20) for _ in range(100)]") == -signal.SIGKILL
        assert (group.oom_kills(), group.peak_memory()) == (1, 32 * MIB)
        assert neighbour.oom_kills() == 0
        for name in ("greedy", "neighbour"):
            cgroups.remove(place, name)
            assert not Path(place["parents"]["memory"], name).exists()

    def test_processes_end_at_the_limit(self, place: dict[str, Any]) -> None:
        limits = Limits(memory=None, cpus=None, ranks=1)
        limits.pids = 8
        group = Group(place, "many", limits)
        code = (
            "children = []\n"
            "try:\n"
            "    while True:\n"
            "        pid = os.fork()\n"
            "        if pid == 0: time.sleep(600)\n"
            "        children.append(pid)\n"
            "except BlockingIOError:\n"
            "    for pid in children: os.kill(pid, 9), os.waitpid(pid, 0)\n"
            "    os._exit(len(children))"
        )
        assert run_in(group, code) == 7
        assert group.refused_forks() == 1
        cgroups.remove(place, "many")

    def test_cpu_time_ends_at_the_limit(self, place: dict[str, Any]) -> None:
        group = Group(place, "busy", Limits(memory=None, cpus=0.25, ranks=1))
        code = (
            "end = time.monotonic() + 4\n"
            "while time.monotonic() < end: pass\n"
            "os._exit(int(time.process_time() * 20))"
        )
        assert 0 < run_in(group, code) <= 1.3 * 20
        cgroups.remove(place, "busy")

    def test_ranks_share_scarce_cores_by_their_number(self, place: dict[str, Any]) -> None:
        Group(place, "ranks", Limits(memory=None, cpus=None, ranks=4))
        folder = Path(place["parents"]["cpu"], "ranks")
        assert (folder / "cpu.weight").read_text() == "400\n"
        cgroups.remove(place, "ranks")

    def test_a_limit_that_the_kernel_refuses_names_its_file(self, place: dict[str, Any]) -> None:
        with pytest.raises(OSError, match="Invalid argument") as raised:
            Group(place, "refused", Limits(memory=-5, cpus=None, ranks=1))
        assert raised.value.filename == f"{place['parents']['memory']}/refused/memory.max"
        cgroups.remove(place, "refused")
