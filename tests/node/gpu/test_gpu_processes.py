"""Whose a process on a GPU is: real processes, and the files that an attempt's child and wrappers write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.hub import eventually
from trainhub_node import proc, records
from trainhub_node.gpu.gpu_processes import OwnerFinder, ProcessInfo, ProcessOwner, no_owner
from trainhub_node.rundir import RunDir

RUN = "a" * 32
SPAWN = """
import os, subprocess, sys, time
depth = int(sys.argv[1])
if depth:
    subprocess.Popen([sys.executable, "-c", sys.argv[2], str(depth - 1), sys.argv[2]], stdin=subprocess.PIPE)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


class Tree:
    """A process with a child, and so on, `depth` of them below. `pids`: from the root down."""

    def __init__(self, depth: int) -> None:
        self._root = subprocess.Popen(
            [sys.executable, "-c", SPAWN, str(depth), SPAWN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        assert self._root.stdout is not None
        values = {int(self._root.stdout.readline()) for _ in range(depth + 1)}
        self.pids = sorted(values, key=lambda pid: len(_ancestors(pid)))

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self._root.communicate()


def _ancestors(pid: int) -> list[int]:
    result = []
    while pid > 1 and (one := proc.read_process(pid)) is not None:
        result.append(pid)
        pid = one.parent
    return result


@pytest.fixture
def tree() -> Iterator[Callable[[int], Tree]]:
    with ExitStack() as stack:
        yield lambda depth: stack.enter_context(Tree(depth))


@pytest.fixture
def folder(tmp_path: Path) -> RunDir:
    value = RunDir(str(tmp_path), RUN, 2)
    Path(value.ranks).mkdir(parents=True)
    return value


def started(folder: RunDir, rank: int, pid: int, identity: str | None = None) -> None:
    existing = proc.identity(pid) if identity is None else identity
    records.write(
        folder.started(rank),
        {"pid": pid, "identity": existing, "wrapper": 0, "wrapper_identity": None, "at": 1.0},
    )


def child(folder: RunDir, pid: int) -> None:
    records.write(folder.child, {"pid": pid, "identity": proc.identity(pid)})


class TestOwners:
    def test_of_a_rank_are_its_run_attempt_and_number(
        self, folder: RunDir, tree: Callable[[int], Tree]
    ) -> None:
        (pid,) = tree(0).pids
        started(folder, 3, pid)

        assert OwnerFinder(lambda: [folder]).find(pid) == ProcessOwner(RUN, 2, 3)

    def test_of_a_ranks_descendants_are_the_ranks(self, folder: RunDir, tree: Callable[[int], Tree]) -> None:
        pids = tree(3).pids
        started(folder, 0, pids[0])

        assert OwnerFinder(lambda: [folder]).find(pids[-1]) == ProcessOwner(RUN, 2, 0)

    def test_of_launchers_and_helpers_are_the_run_alone(
        self, folder: RunDir, tree: Callable[[int], Tree]
    ) -> None:
        pids = tree(2).pids
        child(folder, pids[0])
        started(folder, 1, pids[2])

        owners = OwnerFinder(lambda: [folder])
        assert owners.find(pids[1]) == ProcessOwner(RUN, 2, None)
        assert owners.find(pids[2]) == ProcessOwner(RUN, 2, 1)

    def test_of_a_process_whose_rank_is_gone_are_known_by_its_group(
        self, folder: RunDir, tree: Callable[[int], Tree]
    ) -> None:
        child(folder, os.getpid())
        (pid,) = tree(0).pids  # it leads a group of its own, as a rank does; taken in by the child
        started(folder, 5, pid, identity="the boot of before/1")

        assert OwnerFinder(lambda: [folder]).find(pid) == ProcessOwner(RUN, 2, 5)

    def test_of_strangers_are_nobody(self, folder: RunDir, tree: Callable[[int], Tree]) -> None:
        ours, strange = tree(0).pids[0], tree(0).pids[0]
        started(folder, 0, ours)

        owners = OwnerFinder(lambda: [folder])
        assert owners.find(strange) is None
        assert owners.find(1) is None

    def test_of_a_reused_number_are_nobody(self, folder: RunDir, tree: Callable[[int], Tree]) -> None:
        (pid,) = tree(0).pids
        started(folder, 0, pid, identity=f"{proc.boot_id()}/17")

        assert OwnerFinder(lambda: [folder]).find(pid) is None

    def test_of_a_process_that_has_ended_are_nobody(
        self, folder: RunDir, tree: Callable[[int], Tree]
    ) -> None:
        with Tree(0) as removed:
            started(folder, 0, removed.pids[0])

        assert OwnerFinder(lambda: [folder]).find(removed.pids[0]) is None

    def test_that_are_written_down_later_are_found_later(
        self, folder: RunDir, tree: Callable[[int], Tree]
    ) -> None:
        (pid,) = tree(0).pids
        owners = OwnerFinder(lambda: [folder])
        assert owners.find(pid) is None

        started(folder, 0, pid)
        assert eventually(lambda: owners.find(pid)) == ProcessOwner(RUN, 2, 0)

    def test_are_forgotten_with_their_attempt(self, folder: RunDir, tree: Callable[[int], Tree]) -> None:
        (pid,) = tree(0).pids
        started(folder, 0, pid)
        reserved = [folder]
        owners = OwnerFinder(lambda: reserved)
        assert owners.find(pid)

        reserved.clear()
        assert eventually(lambda: owners.find(pid) is None)

    @pytest.mark.parametrize(
        "record", [{"pid": "1", "identity": 7}, [], {"pid": None}, {"identity": "x"}, 17]
    )
    def test_are_not_found_in_nonsense_that_a_rank_wrote(self, folder: RunDir, record: object) -> None:
        records.write(folder.started(0), record)
        Path(folder.ranks, "x.started.json").write_text("{")
        Path(folder.ranks, "1.started.json").symlink_to("/dev/zero")

        assert OwnerFinder(lambda: [folder]).find(os.getpid()) is None

    def test_of_an_attempt_without_a_folder_are_nobody(self, tmp_path: Path) -> None:
        assert OwnerFinder(lambda: [RunDir(str(tmp_path), "0" * 32, 1)]).find(os.getpid()) is None


class TestProcesses:
    def test_are_told_in_order_with_what_is_known(self, tree: Callable[[int], Tree]) -> None:
        first, second = sorted(tree(1).pids)
        processes = ProcessInfo(lambda pid: ProcessOwner("r1", 1, 0) if pid == first else None)
        values = processes.describe({second: None, first: 2**30}, {first: 40.0})

        assert [(one.pid, one.memory_bytes, one.sm_pct, one.run, one.rank) for one in values] == [
            (first, 2**30, 40.0, "r1", 0),
            (second, None, None, "", None),
        ]

    def test_have_the_account_that_they_run_as_unless_the_owner_is_known(self) -> None:
        (one,) = ProcessInfo(no_owner).describe({os.getpid(): None}, {})
        (ours,) = ProcessInfo(lambda _: ProcessOwner("r1", 1, user="ada")).describe({os.getpid(): None}, {})

        assert one.user
        assert ours.user == "ada"

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            (["{script}", "--token", "secret"], "python train.py"),
            (["-u", "-W", "ignore", "{script}"], "python train.py"),
            # Any free port: the process must still be there when it is looked at.
            (["-m", "http.server", "0", "--bind", "127.0.0.1"], "python -m http.server"),
            (["-c", "import time; time.sleep(60)"], "python"),
        ],
    )
    def test_are_named_by_program_and_script_and_tell_no_arguments(
        self, tmp_path: Path, arguments: list[str], name: str
    ) -> None:
        script, python = tmp_path / "train.py", tmp_path / "python"
        script.write_text("import time; time.sleep(60)")
        python.symlink_to(sys.executable)
        value = subprocess.Popen(
            [str(python), *(word.format(script=script) for word in arguments)], stderr=subprocess.DEVNULL
        )
        processes = ProcessInfo(no_owner)
        try:
            assert eventually(
                lambda: [one.name for one in processes.describe({value.pid: None}, {})] == [name]
            )
        finally:
            value.kill()
            value.wait()

    def test_that_are_gone_or_elsewhere_keep_their_number(self) -> None:
        (one,) = ProcessInfo(no_owner).describe({2**22 + 1: 2**30}, {})

        assert (one.pid, one.name, one.user, one.memory_bytes) == (2**22 + 1, "", "", 2**30)
