"""What a hub hears of a node's measurements: a real agent beside simulated GPUs, over a real road."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator import Scenario, environment, xid
from tests.node.builders import environ, script
from tests.node.hub import FakeHub
from tests.node.processes import agent_process
from tests.simulator.worlds import busy, eight_h100
from trainhub_launch.telemetry import BUCKET_S, Block, unpack
from trainhub_node.agent import Agent

pytestmark = pytest.mark.slow


class World:
    """A machine with eight GPUs; `change` makes it another one while its agent runs."""

    def __init__(self, path: Path) -> None:
        self.scenario: Scenario = eight_h100()
        for index, gpu in enumerate(self.scenario.gpus):
            busy(gpu, power_w=100.0 * (index + 1), utilization_pct=float(index))
        self.path = self.scenario.write(path)
        self.uuids = tuple(gpu.uuid for gpu in self.scenario.gpus)

    def change(self) -> None:
        self.scenario.write(self.path)


@pytest.fixture
def world(hub: FakeHub, tmp_path: Path) -> Iterator[World]:
    instance = World(tmp_path / "scenario")
    with agent_process({**environ(hub, tmp_path / "node"), **environment(instance.path)}):
        hub.wait(lambda: hub.heartbeat and len(hub.heartbeat.gpus) == 8)
        yield instance


def column(block: Block, metric: str) -> list[list[float]]:
    """step -> subject -> value."""
    numbers = unpack(block.values)
    width, at = len(block.metrics), block.metrics.index(metric)
    row = width * len(block.subjects)
    return [list(numbers[step * row + at : (step + 1) * row : width]) for step in range(block.steps)]


def of_gpus(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if not block.is_host]


class TestWhileSomebodyLooks:
    def test_every_second_arrives_once_with_the_values_of_every_gpu(self, hub: FakeHub, world: World) -> None:
        hub.interval_s = 1.0
        hub.is_watched = True

        hub.wait(lambda: sum(block.steps for block in of_gpus(hub.samples)) >= 6)

        seconds = [block.start + step for block in of_gpus(hub.samples) for step in range(block.steps)]
        assert seconds == list(range(seconds[0], seconds[0] + len(seconds)))
        for block in of_gpus(hub.samples):
            assert block.subjects == world.uuids
            assert column(block, "power_w")[-1] == [100.0 * (index + 1) for index in range(8)]
            assert column(block, "utilization_pct")[-1] == [float(index) for index in range(8)]

    def test_the_last_minute_comes_first(self, hub: FakeHub, world: World) -> None:
        # A report every 0.2 s: more seconds in one of them are of before.
        hub.wait(lambda: hub.heartbeats >= 20)
        assert hub.samples == []
        hub.is_watched = True

        hub.wait(lambda: hub.samples)

        assert hub.samples[0].steps >= 3

    def test_a_gpu_that_falls_off_the_bus_has_no_values_any_more(self, hub: FakeHub, world: World) -> None:
        hub.is_watched = True
        hub.wait(lambda: hub.samples)
        world.scenario.gpus[2].removed = True
        world.change()

        hub.wait(lambda: math.isnan(column(of_gpus(hub.samples)[-1], "power_w")[-1][2]))

        block = of_gpus(hub.samples)[-1]
        assert [math.isnan(value) for value in column(block, "power_w")[-1]] == [
            index == 2 for index in range(8)
        ]
        hub.wait(lambda: hub.heartbeat and hub.heartbeat.gpus[2].state == "lost")


def test_buckets_arrive_though_nobody_looks_and_only_once(hub: FakeHub, world: World) -> None:
    hub.wait(lambda: sum(block.steps for block in of_gpus(hub.buckets)) >= 2, 30)

    starts = [block.start + BUCKET_S * step for block in of_gpus(hub.buckets) for step in range(block.steps)]
    assert starts == [starts[0], starts[0] + BUCKET_S]
    assert column(of_gpus(hub.buckets)[-1], "power_w")[-1] == [100.0 * (index + 1) for index in range(8)]
    assert hub.samples == []


def test_an_xid_hastens_a_report(hub: FakeHub, world: World) -> None:
    hub.interval_s = 60.0
    beats = hub.heartbeats
    hub.wait(lambda: hub.heartbeats > beats)
    world.scenario.gpus[3].events.append(xid(79))
    world.change()

    hub.wait(lambda: hub.events)

    assert [(event.kind, event.gpu, event.code) for event in hub.events if event.kind == "xid"] == [
        ("xid", world.uuids[3], 79)
    ]


def test_a_driver_that_goes_while_the_agent_runs_is_told_and_its_return_too(
    hub: FakeHub, world: World
) -> None:
    world.scenario.call_error = world.scenario.init_error = 9
    world.change()
    hub.wait(lambda: hub.heartbeat and hub.heartbeat.nvml)

    world.scenario.call_error = world.scenario.init_error = 0
    world.scenario.epoch += 1
    world.change()

    hub.wait(
        lambda: hub.heartbeat and not hub.heartbeat.nvml and all(gpu.numbers for gpu in hub.heartbeat.gpus),
        60,
    )


def test_logs_arrive_though_the_hub_refuses_everything_measured(hub: FakeHub, agent: Agent) -> None:
    hub.is_watched = True
    hub.refuses = lambda report: bool(report.samples or report.buckets)
    hub.wait(lambda: hub.refused > 0)

    key = hub.give(script(hub, "print('hello')\n"))

    hub.wait_done(key)
    assert hub.log(key) == b"hello\n"


def test_reports_go_on_at_their_pace_where_nothing_is_confirmed(
    hub: FakeHub, start_agent: Callable[[], Agent]
) -> None:
    hub.confirms = False
    start_agent()

    hub.wait(lambda: sum(block.is_host for block in hub.buckets) >= 3, 30)

    assert len({block.start for block in hub.buckets}) == 1
