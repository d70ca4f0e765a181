"""From a GPU that misbehaves to somebody who hears of it: a real hub and agent on a simulated machine, and a webhook."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator import Process, Scenario, environment, xid
from simulator.models import h100
from tests.hub import Hub, eventually
from tests.workspaces.notifications.receiver import Receiver

pytestmark = pytest.mark.slow
GIB = 2**30
HW_THERMAL_SLOWDOWN = 0x40
SOON = {
    "ALERT_HANG_MINUTES": "0.05", "ALERT_STRAY_MINUTES": "0.05", "ALERT_THROTTLE_SECONDS": "1", "ALERT_NVML_SECONDS": "1",
    "ALERT_DISK_FREE_BYTES": "0", "ALERT_HOST_MEMORY_PERCENT": "0",
}
TROUBLES = {"gpu_xid": 0, "gpu_lost": 0, "gpu_throttled": 1, "gpu_stray": 2, "gpu_hang": 3}
"""Kind -> the GPU that has it."""


def healthy() -> Scenario:
    return Scenario([h100(f"alerts gpu {index}") for index in range(4)])


def in_trouble() -> Scenario:
    world = healthy()
    world.gpus[1].values |= {"throttle_reasons": HW_THERMAL_SLOWDOWN}
    world.gpus[2].processes = [Process(os.getpid(), 31 * GIB, sm_pct=0)]
    world.gpus[2].values |= {"memory_used_bytes": 31 * GIB}
    world.gpus[3].values |= {"utilization_pct": 100, "power_w": 95}
    world.gpus[0].events = [xid(79)]
    return world


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return healthy().write(tmp_path / "scenario")


@pytest.fixture
def hub(tmp_path: Path, scenario: Path) -> Iterator[Hub]:
    own = Hub(tmp_path / "data", **SOON, **environment(scenario))
    try:
        yield own.start()
    finally:
        own.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.stop()


def listen(hub: Hub, receiver: Receiver) -> None:
    asked = {"name": "test", "target": receiver.url, "scope": "workspace"}
    events = ["alert.critical", "alert.warning", "alert.cleared"]
    with hub.client() as client:
        client.post("/api/v1/notification-channels/", json={**asked, "events": events}).raise_for_status()


def told(receiver: Receiver, event: str) -> Counter[str]:
    return Counter(got.body["alert"]["kind"] for got in list(receiver.got) if got.body["event"] == event)


def gpus(hub: Hub) -> list[dict[str, Any]]:
    with hub.client() as client:
        return [gpu for node in client.get("/api/v1/nodes/").json() for gpu in node["gpus"]]


def test_each_trouble_reaches_the_receiver_once_when_it_begins_and_once_when_it_is_over(
    hub: Hub, scenario: Path, receiver: Receiver
) -> None:
    eventually(lambda: len(gpus(hub)) == 4, 60, "the node tells of its GPUs")
    listen(hub, receiver)
    world = in_trouble()
    world.write(scenario)
    eventually(lambda: told(receiver, "alert.fired")["gpu_xid"], 60, "the XID error is told")
    world.gpus[0].removed = True
    world.write(scenario)
    eventually(lambda: set(told(receiver, "alert.fired")) >= set(TROUBLES), 90, "every trouble is told")
    healthy().write(scenario)
    eventually(lambda: set(told(receiver, "alert.cleared")) >= set(TROUBLES), 180, "the end of every trouble is told")
    for event in ("alert.fired", "alert.cleared"):
        assert told(receiver, event) == dict.fromkeys(TROUBLES, 1), event
    where = {got.body["alert"]["kind"]: got.body["gpu"]["index"] for got in receiver.got}
    assert where == TROUBLES
    with hub.client() as client:
        assert client.get("/api/v1/alerts/?state=firing").json()["results"] == []
        assert len(client.get("/api/v1/alerts/?state=cleared").json()["results"]) == len(TROUBLES)


def test_a_driver_that_goes_and_comes_back_is_told_as_that_and_not_as_gpus_that_are_well(
    hub: Hub, scenario: Path, receiver: Receiver
) -> None:
    eventually(lambda: len(gpus(hub)) == 4, 60, "the node tells of its GPUs")
    listen(hub, receiver)
    world = healthy()
    world.gpus[3].values |= {"utilization_pct": 100, "power_w": 95}
    world.write(scenario)
    eventually(lambda: told(receiver, "alert.fired")["gpu_hang"], 60, "the hang is told")
    world.init_error = world.call_error = 9
    world.write(scenario)
    eventually(lambda: told(receiver, "alert.fired")["node_nvml"], 90, "that the driver is gone is told")
    assert told(receiver, "alert.cleared") == {}
    world.init_error = world.call_error = 0
    world.epoch += 1
    world.write(scenario)
    eventually(lambda: told(receiver, "alert.cleared")["node_nvml"], 120, "that the driver is back is told")
    assert told(receiver, "alert.cleared") == {"node_nvml": 1}
