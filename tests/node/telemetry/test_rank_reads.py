"""Real processes read real files, in a tree as that of a rank with processes that load its data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trainhub_node.gpu.gpu_processes import ProcessOwner
from trainhub_node.telemetry.rank_reads import RankReads

MB = 1_000_000
OWNER = ProcessOwner("5f" * 16, 1, 3)
# Reads the file as often as it is told to, in a process of its own.
LOADER = """
import os, sys
for line in sys.stdin:
    with open(sys.argv[1], 'rb', buffering=0) as file:
        while file.read(65536):
            pass
    print('done', flush=True)
"""
RANK = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', *sys.argv[1:]]))"


class Rank:
    def __init__(self, file: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", RANK, LOADER, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("now\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(b"x" * 20 * MB)
    return path


def test_a_rank_counts_with_the_processes_that_load_its_data(file: Path) -> None:
    rank = Rank(file)
    try:
        reads = RankReads(lambda: {rank.process.pid: OWNER})
        rank.read()
        assert reads.read(0.0) == (), "what was read before is not read now"
        rank.read()
        assert reads.read(1.0) == (), "too early to measure again"
        (measured,) = reads.read(10.0)
        assert (measured.run, measured.attempt, measured.rank) == (OWNER.run, 1, 3)
        assert 2 * MB <= measured.calls_bytes_s < 2.5 * MB
        (idle,) = reads.read(20.0)
        assert idle.calls_bytes_s < 0.1 * MB
        rank.end()
        assert reads.read(30.0) == ()
    finally:
        rank.process.kill()
        rank.process.wait()


def test_without_ranks_no_process_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[object]:
        raise AssertionError

    monkeypatch.setattr("trainhub_node.proc.list_processes", fail)
    assert RankReads(dict).read(0.0) == ()
