"""An agent beside simulated GPUs: who holds which is told by run, attempt and rank, and what befalls them
reaches the hub."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from simulator import Scenario, environment, xid
from simulator.models import h100
from tests.node.builders import environ, order, process
from tests.node.conftest import end_children
from tests.node.hub import FakeHub
from tests.node.processes import agent_process
from trainhub_launch.machine import GpuFact

FOREVER = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, 'helper.py'])\ntime.sleep(600)\n"


def gpus_of(hub: FakeHub) -> Mapping[str, GpuFact]:
    return {gpu.uuid: gpu for gpu in hub.heartbeat.gpus} if hub.heartbeat else {}


class TestHolders:
    def test_are_told_by_run_attempt_and_rank_with_their_helpers(self, hub: FakeHub, tmp_path: Path) -> None:
        # Processes are found by the UUID that they were given, so it must be nobody else's on this machine.
        first, second, free = (
            h100(f"{name} of {hub.url}", processes="visible") for name in ("first", "second", "free")
        )
        env = environ(hub, tmp_path / "node") | environment(
            Scenario([first, second, free]).write(tmp_path / "scenario")
        )
        argv = ("python", "train.py")
        key = hub.give(
            order(
                hub,
                {"train.py": FOREVER, "helper.py": "import time\ntime.sleep(600)\n"},
                process(0, argv, of=2, CUDA_VISIBLE_DEVICES=first.uuid),
                process(1, argv, of=2, CUDA_VISIBLE_DEVICES=second.uuid),
            )
        )

        with ExitStack() as stack:
            stack.callback(end_children, tmp_path)
            stack.enter_context(agent_process(env))
            hub.wait(
                lambda: all(
                    len(gpus_of(hub).get(gpu.uuid, GpuFact("", 0, "")).processes) == 2
                    for gpu in (first, second)
                )
            )
            values = gpus_of(hub)

        for rank, gpu in enumerate((first, second)):
            assert {(one.run, one.attempt, one.rank) for one in values[gpu.uuid].processes} == {(*key, rank)}
            assert {one.name.partition(" ")[2] for one in values[gpu.uuid].processes} == {
                "train.py",
                "helper.py",
            }
        assert values[free.uuid].processes == ()


class TestEvents:
    def test_reach_the_hub_once_each_and_a_lost_gpu_stays_in_the_picture(
        self, hub: FakeHub, tmp_path: Path
    ) -> None:
        scenario = Scenario([h100("first"), h100("second")])
        path = scenario.write(tmp_path / "scenario")
        gpu = scenario.gpus[1]
        with agent_process(environ(hub, tmp_path / "node") | environment(path)):
            hub.wait(lambda: len(gpus_of(hub)) == 2)
            gpu.events.append(xid(79))
            scenario.write(path)
            hub.wait(lambda: hub.events)
            gpu.removed = True
            scenario.write(path)
            hub.wait(lambda: gpus_of(hub)[gpu.uuid].state == "lost" and len(hub.events) >= 2)
            values = gpus_of(hub)

        assert [(event.serial, event.kind, event.gpu, event.code) for event in hub.events] == [
            (1, "xid", gpu.uuid, 79),
            (2, "lost", gpu.uuid, 0),
        ]
        assert (values[gpu.uuid].numbers, values[gpu.uuid].counters) == ({}, {"xid_last": 79, "xid_count": 1})
        assert values[scenario.gpus[0].uuid].numbers["power_w"] == 70
