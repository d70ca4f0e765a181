"""The files that announce a stop, as ranks see them under their own account, also without the signal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.node.builders import order, process, script
from tests.node.hub import FakeHub, Key
from tests.node.test_range import range_settings
from trainhub_launch.data.checkpoint_order import CheckpointOrder
from trainhub_launch.plan import RANK_WRAPPER
from trainhub_launch.report import StopOrder
from trainhub_launch.states import StopReason
from trainhub_node.agent import Agent

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "fair-share.md"
# The process that polls is in a session of its own, and its parent, the rank, keeps the signal to itself.
LAUNCHER = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, 'worker.py'], start_new_session=True)
sys.exit(worker.wait())
"""
WORKER = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
notice = pathlib.Path(os.environ['TRAINHUB_STOP_FILE'])
print('present' if notice.exists() else 'absent', flush=True)
while not notice.exists():
    time.sleep(0.005)
print(os.getuid(), notice.read_text(), end='', flush=True)
"""
# When the signal comes, the files are there already.
HANDLES = """
import os, signal, sys, time
def save(number, frame):
    for name in ('TRAINHUB_STOP_FILE', 'TRAINHUB_PREEMPTION_FILE'):
        path = os.environ[name]
        print(open(path).read().strip() if os.path.exists(path) else 'absent')
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('up', flush=True)
time.sleep(600)
"""


def preempt(hub: FakeHub, key: Key, why: str = StopReason.PREEMPTED) -> None:
    hub.stops[key] = StopOrder(*key, grace_s=15, why=why)


def check_notice(line: str, reason: str = "preempted", seconds: float = 15.0) -> None:
    notice = json.loads(line)
    at = datetime.strptime(notice.pop("at"), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=2)
    assert notice == {"reason": reason, "seconds_left": seconds}


def test_both_are_there_before_the_signal_of_a_preemption(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(script(hub, HANDLES))
    hub.wait_log(key, b"up")
    preempt(hub, key)
    fact = hub.wait_done(key)
    assert fact.stopping == StopReason.PREEMPTED
    _, stop, preemption = hub.log(key).decode().splitlines()
    check_notice(stop)
    assert stop == preemption


def test_another_stop_has_only_the_one_for_every_stop(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(script(hub, HANDLES))
    hub.wait_log(key, b"up")
    preempt(hub, key, StopReason.CANCELED)
    hub.wait_done(key)
    _, stop, preemption = hub.log(key).decode().splitlines()
    check_notice(stop, "canceled")
    assert preemption == "absent"


def test_a_time_limit_is_announced(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(replace(script(hub, HANDLES), timeout_s=1, grace_s=20))
    assert hub.wait_done(key).stopping == StopReason.TIMEOUT
    check_notice(hub.log(key).decode().splitlines()[1], "timeout", 20.0)


def test_the_failure_of_another_rank_is_announced(hub: FakeHub, agent: Agent) -> None:
    fails = "import time\ntime.sleep(2)\nraise SystemExit(3)\n"
    ranks = [process(0, ("python", "fails.py"), of=2), process(1, ("python", "train.py"), of=2)]
    key = hub.give(order(hub, {"fails.py": fails, "train.py": HANDLES}, *ranks, grace_s=20))
    assert [member.exit_code for member in hub.wait_done(key).members] == [3, 0]
    check_notice(hub.log(key, "70_driver_log_1.txt").decode().splitlines()[1], "failed", 20.0)


def test_a_stop_without_a_grace_has_none(hub: FakeHub, agent: Agent) -> None:
    key = hub.give(script(hub, HANDLES))
    hub.wait_log(key, b"up")
    hub.stops[key] = StopOrder(*key, grace_s=0, why=StopReason.CANCELED)
    hub.wait_done(key)
    assert not any((agent.settings.attempts / f"{key[0]}-1" / "notices").iterdir())


def test_the_example_in_the_documents_saves_its_work(hub: FakeHub, agent: Agent) -> None:
    _, _, text = DOCUMENT.read_text().partition("### The files that announce a stop")
    example = text.partition("```python\n")[2].partition("```")[0]
    text = example.replace("for step", "print('up', flush=True)\nfor step")
    value = order(
        hub, {"train.py": text}, process(0, ("python", "train.py"), TRAINHUB_CHECKPOINT_DIR="checkpoints")
    )
    key = hub.give(replace(value, checkpoint=CheckpointOrder("checkpoints")))
    hub.wait_log(key, b"up")
    preempt(hub, key)
    assert hub.wait_done(key).members[0].exit_code == 0, hub.log(key)
    (part,) = hub.checkpoints.parts.values()
    assert [file["path"] for file in part["files"]] == ["step.txt"]
    assert hub.blobs[part["files"][0]["sha256"]].isdigit()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run ranks as another account")
class TestUnderAnAccountOfItsOwn:
    def test_each_rank_reads_it_in_its_namespaces_without_the_signal(
        self, hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path
    ) -> None:
        start_agent(range_settings(hub, reachable))
        files = {"train.py": LAUNCHER, "worker.py": WORKER}
        argv = ("python", "train.py")
        key = hub.give(order(hub, files, process(0, argv, of=2), process(1, argv, of=2), grace_s=15))
        logs = [f"70_driver_log_{rank}.txt" for rank in range(2)]
        for log in logs:
            hub.wait_log(key, b"absent", log)
        preempt(hub, key)
        fact = hub.wait_done(key)
        assert [member.exit_code for member in fact.members] == [0, 0], [hub.log(key, log) for log in logs]
        for log in logs:
            uid, _, line = hub.log(key, log).decode().splitlines()[1].partition(" ")
            assert int(uid) != os.getuid()
            check_notice(line)

    @pytest.mark.mpi
    def test_under_mpirun_too(self, hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path) -> None:
        start_agent(range_settings(hub, reachable))
        launcher = ("mpirun", "--host", "127.0.0.1:2", "-np", "2", "--bind-to", "none", RANK_WRAPPER)
        argv = ("python", "train.py")
        processes = [process(rank, argv, of=2) for rank in range(2)]
        key = hub.give(order(hub, {"train.py": WORKER}, *processes, launcher=launcher, grace_s=15))
        logs = [f"70_driver_log_{rank}.txt" for rank in range(2)]
        for log in logs:
            hub.wait_log(key, b"absent", log)
        preempt(hub, key)
        hub.wait_done(key)
        for log in logs:
            check_notice(hub.log(key, log).decode().splitlines()[1].partition(" ")[2])
