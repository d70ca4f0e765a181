"""Runs that use too much of the disk are ended, those beside them go on, and watching costs nearly
nothing."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import script, settings
from tests.node.hub import FakeHub
from tests.node.supervisor.test_termination import FOREVER
from trainhub_launch.states import ErrorKind, StopReason
from trainhub_node.agent import Agent
from trainhub_node.attempts import disk_watch
from trainhub_node.untrusted.disk_usage import Unmeasurable, deleted_bytes, tree_bytes

MIB, GIB = 2**20, 2**30
# 200 MB in a second, as a disk may write them.
WRITE = """
import os, time
print('up', flush=True)
with open({name!r}, 'wb') as file:
    {then}
    for _ in range({pieces}): file.write(bytes(10 * 2**20)), time.sleep(0.05)
    file.flush()
    time.sleep(600)
"""


def writing(pieces: int, name: str = "large", then: str = "pass") -> str:
    return WRITE.format(pieces=pieces, name=name, then=then)


class TestLimit:
    def test_a_run_that_uses_more_than_it_asked_for_is_ended_and_says_how_much(
        self, hub: FakeHub, agent: Agent
    ) -> None:
        key = hub.give(replace(script(hub, writing(60)), disk_bytes=100 * MIB))
        fact = hub.wait_done(key, 60)
        assert (fact.stopping, fact.error_kind) == (StopReason.DISK, ErrorKind.DISK_LIMIT)
        assert fact.error.startswith("The run used ")
        assert fact.error.endswith(" MiB of disk on here; it asked for 100 MiB.")
        assert fact.members[0].ended_by_us

    def test_a_file_without_a_name_counts(self, hub: FakeHub, agent: Agent) -> None:
        key = hub.give(replace(script(hub, writing(60, then="os.unlink('large')")), disk_bytes=100 * MIB))
        assert hub.wait_done(key, 60).error_kind == ErrorKind.DISK_LIMIT

    def test_one_that_stays_below_is_left_alone(self, hub: FakeHub, agent: Agent) -> None:
        code = "import time\nopen('x', 'wb').write(bytes(50 * 2**20))\ntime.sleep(2)\n"
        fact = hub.wait_done(hub.give(replace(script(hub, code), disk_bytes=100 * MIB)))
        assert (fact.members[0].exit_code, fact.error) == (0, "")

    def test_one_in_its_grace_is_killed_at_once(self, hub: FakeHub, agent: Agent) -> None:
        code = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + writing(60)
        key = hub.give(replace(script(hub, code), disk_bytes=300 * MIB, timeout_s=1, grace_s=60))
        started = time.monotonic()
        hub.wait_done(key, 60)
        assert time.monotonic() - started < 30


@pytest.fixture
def small_disk() -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="trainhub-disk-", dir="/var/lib")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g,mode=755", "tmpfs", folder], check=True)
    try:
        yield Path(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        Path(folder).rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
class TestReserve:
    def test_the_run_that_grows_is_ended_before_the_disk_is_full_and_the_others_go_on(
        self, hub: FakeHub, start_agent: Callable[..., Agent], small_disk: Path
    ) -> None:
        start_agent(settings(hub, small_disk / "node"))
        good = hub.give(script(hub, writing(2)))
        hub.wait_log(good, b"up")
        greedy = hub.give(script(hub, writing(200)))
        fact = hub.wait_done(greedy, 60)
        assert (fact.stopping, fact.error_kind) == (StopReason.DISK, ErrorKind.DISK_FULL)
        assert fact.error.startswith("The disk of here was nearly full, with ")
        assert "this run was the one that wrote most; it used " in fact.error
        assert hub.facts[good].stopping == ""
        assert os.statvfs(small_disk).f_bavail > 0

    def test_what_settled_runs_have_left_is_deleted_first(
        self, hub: FakeHub, start_agent: Callable[..., Agent], small_disk: Path
    ) -> None:
        start_agent(settings(hub, small_disk / "node"))
        first = hub.give(script(hub, "open('x', 'wb').write(bytes(600 * 2**20))\n"))
        hub.wait_done(first)
        second = hub.give(script(hub, writing(40).replace("time.sleep(600)", "time.sleep(1)")))
        fact = hub.wait_done(second, 60)
        assert (fact.members[0].exit_code, fact.error) == (0, "")

    def test_an_idle_watch_takes_next_to_no_time(
        self, hub: FakeHub, start_agent: Callable[..., Agent], small_disk: Path
    ) -> None:
        """With a run that asked for disk and has a large tree, and writes nothing; nor does anybody else, as
        other tests would on the disk that they share."""
        agent = start_agent(settings(hub, small_disk / "node"))
        code = (
            "import os\nfor number in range(5000): open(f'{number}', 'w').close()\n"
            "print('ready', flush=True)\n" + FOREVER
        )
        key = hub.give(replace(script(hub, code), disk_bytes=10 * GIB))
        hub.wait_log(key, b"ready")
        time.sleep(1)
        clock = time.pthread_getcpuclockid(agent._disk._thread.ident or 0)
        before = time.clock_gettime(clock)
        time.sleep(5)
        assert time.clock_gettime(clock) - before < 0.05


class TestReserveBytes:
    @pytest.mark.parametrize(
        ("total", "reserve"),
        [(GIB, GIB // 4), (10 * GIB, GIB), (100 * GIB, 5 * GIB), (100 * 2**40, 64 * GIB)],
    )
    def test_is_a_share_within_bounds(self, total: int, reserve: int) -> None:
        assert disk_watch.reserve_bytes(total) == reserve


class TestMeasure:
    def test_counts_blocks_once_and_follows_no_link(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(bytes(MIB))
        os.link(tmp_path / "a", tmp_path / "b")
        (tmp_path / "elsewhere").symlink_to("/")
        with (tmp_path / "sparse").open("wb") as file:
            file.truncate(GIB)
        assert MIB <= tree_bytes(str(tmp_path)) < 2 * MIB

    def test_a_tree_that_is_too_deep_for_a_path_is_no_hiding_place(self, tmp_path: Path) -> None:
        before = Path.cwd()
        try:
            os.chdir(tmp_path)
            for _ in range(25):
                Path("d" * 200).mkdir()
                os.chdir("d" * 200)
        finally:
            os.chdir(before)
        with pytest.raises(Unmeasurable):
            tree_bytes(str(tmp_path))
        subprocess.run(["rm", "-r", str(tmp_path / ("d" * 200))], check=True)

    def test_a_deleted_file_counts_while_it_is_mapped(self, tmp_path: Path) -> None:
        code = (
            "import mmap, os, sys, time\n"
            f"file = open({str(tmp_path / 'x')!r}, 'w+b')\n"
            "file.write(bytes(8 << 20)); file.flush(); os.unlink(file.name)\n"
            "memory = mmap.mmap(file.fileno(), 8 << 20); file.close()\n"
            "print(flush=True); time.sleep(60)\n"
        )
        with subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert deleted_bytes([process.pid], tmp_path.stat().st_dev) >= 8 * MIB
            process.kill()
