"""Two hosts with simulated GPUs and two runs on them: what a scenario says is what the page, the API, the
socket and Prometheus say, of every GPU and for every rank."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from tests.hosts.bench import CLUSTER, Host, Hosts
from tests.hosts.worlds import GPUS, WAITING, gpu_hosts, numbers, runs_on, until_all_gpus_are_there
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
KEYS = ("utilization_pct", "memory_used_bytes", "power_w", "temperature_c", "sm_clock_mhz")
DCGM = {
    "utilization_pct": ("DCGM_FI_DEV_GPU_UTIL", 1.0),
    "memory_used_bytes": ("DCGM_FI_DEV_FB_USED", 2**-20),
    "power_w": ("DCGM_FI_DEV_POWER_USAGE", 1.0),
    "temperature_c": ("DCGM_FI_DEV_GPU_TEMP", 1.0),
    "sm_clock_mhz": ("DCGM_FI_DEV_SM_CLOCK", 1.0),
}
Values = dict[tuple[str, str], float]
"""(UUID, metric) -> value."""


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory, frameworks_python: str) -> Iterator[Hosts]:
    with gpu_hosts(tmp_path_factory.mktemp("gpus"), frameworks_python) as built:
        yield built


@pytest.fixture(scope="module")
def two_runs(gpus: Hosts) -> Iterator[list[str]]:
    with runs_on(gpus) as runs:
        yield runs


def scenario_values(gpus: Hosts) -> Values:
    """What the scenarios say."""
    devices = [gpu for host in gpus.hosts if host.world for gpu in host.world.gpus]
    return {
        (gpu.uuid, key): value
        for gpu in devices
        for key in KEYS
        if isinstance(value := gpu.values[key], int | float)
    }


def same(report: Values, expected: Values) -> bool:
    """To the digits that 32 bits have."""
    return bool(report == pytest.approx(expected, rel=1e-6))


def values_from_api(gpus: Hosts) -> Values:
    nodes = [node for node in gpus.runs.get("/nodes/") if node["cluster"] == CLUSTER]
    return {
        (gpu["uuid"], key): value
        for node in nodes
        for gpu in node["gpus"]
        for key, value in gpu["numbers"].items()
        if key in KEYS
    }


def scraped(gpus: Hosts) -> dict[str, list[Any]]:
    text = gpus.runs.client.get("/metrics").raise_for_status().text
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def values_from_prometheus(gpus: Hosts) -> Values:
    result = scraped(gpus)
    return {
        (sample.labels["UUID"], key): sample.value / scale
        for key, (name, scale) in DCGM.items()
        for sample in result.get(name, [])
    }


def values_from_socket(gpus: Hosts, *, until: Values, seconds: float = 30) -> Values:
    """What the last sample of either host says, once that is `until`."""
    names = ",".join(host.name for host in gpus.hosts)
    report: Values = {}
    context = cast("ssl.SSLContext", gpus.hub.trusted())
    deadline = time.monotonic() + seconds
    address = f"{gpus.hub.url.replace('http', 'ws')}/ws/telemetry/?nodes={names}"
    headers = {"Authorization": f"Bearer {gpus.hub.owner_token()}"}
    with connect(address, additional_headers=headers, ssl=context, max_size=None) as socket:
        while not same(report, until) and time.monotonic() < deadline:
            message = json.loads(socket.recv(timeout=seconds))
            if message["type"] != "telemetry.sampled" or "gpus" not in message:
                continue
            block = message["gpus"]
            for subject, values in zip(block["subjects"], block["values"][-1], strict=True):
                report |= {
                    (subject, key): value
                    for key, value in zip(block["metrics"], values, strict=True)
                    if key in KEYS
                }
    return report


def values_from_history(gpus: Hosts, host: Host) -> Values:
    """The newest bucket."""
    answer = gpus.runs.get(
        f"/nodes/{host.name}/series/?metrics={','.join(KEYS)}&from={time.time() - 300}&to={time.time() + 10}"
    )
    return {
        (gpu["uuid"], key): last(curve["mean"])
        for gpu in answer["gpus"]
        for key, curve in gpu["series"].items()
    }


def last(values: list[float | None]) -> float:
    """Of what is known."""
    return next(value for value in reversed(values) if value is not None)


class TestAllGpusOfEachNode:
    """First, as later tests hold GPUs to their end."""

    def test_are_the_runs_and_the_next_one_waits_for_whole_nodes(self, gpus: Hosts) -> None:
        until_all_gpus_are_there(gpus)
        spec: dict[str, Any] = {
            "distribution": {"type": "pytorch", "communication_backend": "gloo", "node_count": 2},
            "resources": {"gpus_per_node": "all"},
        }
        shows = "import os; print('sees', os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\n"
        first = gpus.script(shows + WAITING, **spec)
        gpus.runs.until(first, "Running")
        for rank, host in enumerate(gpus.hosts):
            assert host.world is not None
            log = gpus.runs.says(first, b"here", f"70_driver_log_{rank}.txt")
            visible = log.decode().partition("sees ")[2].splitlines()[0].split(",")
            assert sorted(visible) == sorted(gpu.uuid for gpu in host.world.gpus)
        assert gpus.runs.detail(first)["spec"]["resources"]["gpus_per_node"] == "all"
        second = gpus.script(WAITING, **spec)
        eventually(
            lambda: "Waiting for 2 nodes with all 4 GPUs each" in gpus.runs.detail(second)["sentence"],
            30,
            "the second run says for what it waits",
        )
        gpus.runs.client.post(f"/api/v1/runs/{first}/cancel/").raise_for_status()
        gpus.runs.until(second, "Running")
        gpus.hub.cancel_all()


class TestValues:
    def test_are_the_same_everywhere_as_the_scenario_says(self, gpus: Hosts, two_runs: list[str]) -> None:
        expected = scenario_values(gpus)
        eventually(lambda: same(values_from_api(gpus), expected), 30, "the API tells what the scenario says")
        assert same(values_from_prometheus(gpus), expected)
        assert same(values_from_socket(gpus, until=expected), expected)
        eventually(
            lambda: same(
                {**values_from_history(gpus, gpus.hosts[0]), **values_from_history(gpus, gpus.hosts[1])},
                expected,
            ),
            40,
            "history has it too",
        )

    def test_follow_the_scenario(self, gpus: Hosts, two_runs: list[str]) -> None:
        for number, host in enumerate(gpus.hosts):
            assert host.world is not None
            for index, gpu in enumerate(host.world.gpus):
                gpu.values |= numbers(number, index, shift=3)
            host.show(host.world)
        expected = scenario_values(gpus)
        assert same(values_from_socket(gpus, until=expected), expected)
        eventually(lambda: same(values_from_api(gpus), expected), 30, "the API follows")
        assert same(values_from_prometheus(gpus), expected)

    def test_tell_which_run_and_rank_each_gpu_works_for(self, gpus: Hosts, two_runs: list[str]) -> None:
        reserved = {
            sample.labels["UUID"]: sample.labels
            for sample in scraped(gpus)["trainhub_gpu_held"]
            if sample.labels["run"]
        }
        assert len(reserved) == 2 * GPUS
        for run in two_runs:
            answer = gpus.runs.get(f"/runs/{run}/series/")
            for entry in answer["ranks"]:
                for uuid in entry["gpus"]:
                    assert (reserved[uuid]["run_id"], reserved[uuid]["rank"]) == (run, str(entry["rank"]))
            ranks = {uuid for entry in answer["ranks"] for uuid in entry["gpus"]}
            assert {gpu["uuid"] for node in answer["nodes"] for gpu in node["gpus"]} == ranks
            assert len(ranks) == 4

    def test_name_the_processes_of_each_run(self, gpus: Hosts, two_runs: list[str]) -> None:
        def owners() -> dict[str, set[str]]:
            nodes = [node for node in gpus.runs.get("/nodes/") if node["cluster"] == CLUSTER]
            result: dict[str, set[str]] = {}
            for item in (item for node in nodes for item in node["processes"]):
                result.setdefault(item["gpu"], set()).add(item["run"])
            return result

        reserved = {
            sample.labels["UUID"]: {sample.labels["run_id"]} for sample in scraped(gpus)["trainhub_gpu_held"]
        }
        eventually(
            lambda: owners() == reserved, 40, "each GPU's processes are those of the run that holds it"
        )


class TestTrouble:
    def device(self, gpus: Hosts, uuid: str) -> dict[str, Any]:
        return next(gpu for node in gpus.runs.get("/nodes/") for gpu in node["gpus"] if gpu["uuid"] == uuid)

    def test_what_a_gpu_does_not_support_is_absent_everywhere_and_hides_nothing(self, gpus: Hosts) -> None:
        host = gpus.hosts[1]
        assert host.world is not None
        gpu = host.world.gpus[0]
        host.kill_agent()  # what a device supports is asked once in an agent's life
        gpu.unsupported.add("nvmlDeviceGetPowerUsage")
        host.show(host.world)
        host.start_agent()
        eventually(lambda: "power_w" not in self.device(gpus, gpu.uuid)["numbers"], 40, "its power is absent")
        result = self.device(gpus, gpu.uuid)
        assert result["power_w"] is None
        assert result["utilization_pct"] == gpu.values["utilization_pct"]
        assert gpu.uuid not in {sample.labels["UUID"] for sample in scraped(gpus)["DCGM_FI_DEV_POWER_USAGE"]}

    def test_one_that_falls_off_the_bus_is_lost_the_others_go_on_and_it_may_come_back(
        self, gpus: Hosts
    ) -> None:
        host = gpus.hosts[1]
        assert host.world is not None
        removed_item, other = host.world.gpus[3], host.world.gpus[2]
        removed_item.removed = True
        host.show(host.world)
        eventually(lambda: self.device(gpus, removed_item.uuid)["state"] == "lost", 30, "it is lost")
        result = self.device(gpus, removed_item.uuid)
        assert result["numbers"] == {}
        assert result["error"]
        assert self.device(gpus, other.uuid)["utilization_pct"] == other.values["utilization_pct"]
        healthy = {sample.labels["UUID"]: sample.value for sample in scraped(gpus)["trainhub_gpu_healthy"]}
        assert (healthy[removed_item.uuid], healthy[other.uuid]) == (0.0, 1.0)
        removed_item.removed = False
        host.show(host.world)
        eventually(lambda: self.device(gpus, removed_item.uuid)["state"] == "ok", 60, "it is back")
        assert (
            self.device(gpus, removed_item.uuid)["utilization_pct"] == removed_item.values["utilization_pct"]
        )

    def test_without_its_driver_a_node_says_so_goes_on_and_recovers(self, gpus: Hosts) -> None:
        host = gpus.hosts[1]
        assert host.world is not None
        host.world.init_error, host.world.call_error = 9, 9  # DRIVER_NOT_LOADED
        host.show(host.world)

        def node() -> dict[str, Any]:
            return dict(gpus.runs.get(f"/nodes/{host.name}/"))

        eventually(lambda: node()["nvml"], 60, "it says why its GPUs cannot be read")
        assert node()["status"] == "ready"
        assert all(gpu["numbers"] == {} for gpu in node()["gpus"])
        host.world.init_error = host.world.call_error = 0
        host.show(host.world)
        eventually(lambda: not node()["nvml"], 90, "the driver is back")
        gpu = host.world.gpus[1]
        expected = gpu.values["utilization_pct"]
        eventually(lambda: self.device(gpus, gpu.uuid)["utilization_pct"] == expected, 30, "and its GPUs")
