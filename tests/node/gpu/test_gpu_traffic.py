"""What takes a GPU more than one call to know: traffic as rates, the profile between two samples, the parts
of a split GPU."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from simulator import Process, Scenario
from simulator.models import a100, in_mig_mode
from tests.node.gpu.gpu_world import World
from tests.simulator.worlds import one_gpu, split_h100

PCIE_COUNTERS = {"field:197", "field:198"}
PCIE_OF_GPM = {"gpm:20", "gpm:21"}


class TestTraffic:
    """Sent and received are never the same number here, so that one mistaken for the other shows."""

    PCIE = {"pcie_tx_bytes_s": 3e9, "pcie_rx_bytes_s": 1e9}
    NVLINK = {"nvlink_tx_bytes_s": 9e9, "nvlink_rx_bytes_s": 4e9}

    def rates(self, world: World, kind: str) -> tuple[float, float]:
        """By the simulated counters, which grow by the real clock: only their ratio means something here."""
        world.read()
        numbers = world.until(
            lambda snapshot: f"{kind}_tx_bytes_s" in snapshot.only.numbers, after_s=5
        ).only.numbers
        return numbers[f"{kind}_tx_bytes_s"], numbers[f"{kind}_rx_bytes_s"]

    def test_over_pcie_is_read_from_wide_counters(self, tmp_path: Path) -> None:
        scenario = one_gpu(values=self.PCIE, unsupported=PCIE_OF_GPM | {"nvmlDeviceGetPcieThroughput"})
        scenario.start = time.time() - 100
        with World(scenario, tmp_path) as world:
            sent, received = self.rates(world, "pcie")

        assert sent / received == pytest.approx(3, rel=0.01)

    def test_over_pcie_is_read_from_gpm_where_there_are_no_counters(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.PCIE, unsupported=PCIE_COUNTERS), tmp_path) as world:
            assert self.rates(world, "pcie") == pytest.approx((3e9, 1e9))

    def test_over_pcie_is_read_by_the_slow_call_where_there_is_no_other(self, tmp_path: Path) -> None:
        with World(Scenario([a100("one", values=self.PCIE, unsupported=PCIE_COUNTERS)]), tmp_path) as world:
            assert self.rates(world, "pcie") == pytest.approx((3e9, 1e9))

    def test_over_pcie_holds_up_no_other_reading_even_where_the_call_hangs(self, tmp_path: Path) -> None:
        gpus = [
            a100("one", unsupported=PCIE_COUNTERS, delays_ms={"nvmlDeviceGetPcieThroughput": 60_000}),
            a100("two"),
        ]
        with World(Scenario(gpus), tmp_path) as world:
            for _ in range(3):
                snapshot = world.read(5)

        assert [gpu.numbers["temperature_c"] for gpu in snapshot.gpus.values()] == [30, 30]
        assert "pcie_tx_bytes_s" not in snapshot.gpus[gpus[0].uuid].numbers

    def test_over_pcie_is_absent_where_no_call_tells(self, tmp_path: Path) -> None:
        refused = PCIE_COUNTERS | {"nvmlDeviceGetPcieThroughput"}
        with World(Scenario([a100("one", unsupported=refused)]), tmp_path) as world:
            world.read()
            world.until(lambda _: world.lines("does not support pcie_tx_bytes_s"), after_s=5)
            assert "pcie_tx_bytes_s" not in world.read(5).only.numbers

    def test_over_nvlink_is_the_sum_of_its_links(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.NVLINK), tmp_path) as world:
            sent, received = self.rates(world, "nvlink")

        assert sent / received == pytest.approx(9 / 4, rel=0.01)

    @pytest.mark.parametrize("code", [2, 3])
    def test_over_nvlink_is_absent_where_no_field_tells(self, tmp_path: Path, code: int) -> None:
        fields = {f"field:{number}": code for number in (138, 139, 202, 204)}
        with World(one_gpu(values=self.NVLINK, errors=fields), tmp_path) as world:
            world.read()
            assert "nvlink_tx_bytes_s" not in world.read(5).only.numbers
            assert world.lines("its NVLinks have no traffic counters")

    def test_over_nvlink_comes_by_the_newer_fields_where_the_older_are_gone(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.NVLINK, unsupported={"field:138", "field:139"}), tmp_path) as world:
            sent, received = self.rates(world, "nvlink")

        assert sent / received == pytest.approx(9 / 4, rel=0.01)

    def test_over_nvlink_is_absent_without_nvlink(self, tmp_path: Path) -> None:
        with World(one_gpu(values={"nvlink_links": 0}), tmp_path) as world:
            world.read()
            assert "nvlink_tx_bytes_s" not in world.read(5).only.numbers


class TestProfile:
    VALUES = {
        "engine_active_pct": 91,
        "sm_active_pct": 82,
        "sm_occupancy_pct": 43,
        "tensor_active_pct": 54,
        "dram_active_pct": 65,
        "fp64_active_pct": 6,
        "fp32_active_pct": 17,
        "fp16_active_pct": 28,
    }

    def test_comes_with_the_second_sample(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.VALUES), tmp_path) as world:
            first, second = world.read().only.numbers, world.read(5).only.numbers

        assert self.VALUES.keys().isdisjoint(first)
        assert {key: second[key] for key in self.VALUES} == pytest.approx(self.VALUES)

    def test_leaves_out_single_metrics_that_the_device_has_not(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.VALUES, unsupported={"gpm:11"}), tmp_path) as world:
            world.read()
            report = world.read(5).only.numbers

        assert "fp64_active_pct" not in report
        assert report["fp32_active_pct"] == 17

    def test_is_absent_before_hopper(self, tmp_path: Path) -> None:
        with World(Scenario([a100("one")]), tmp_path) as world:
            world.read()
            assert self.VALUES.keys().isdisjoint(world.read(5).only.numbers)


class TestMig:
    def test_parts_are_devices_of_their_own(self, tmp_path: Path) -> None:
        scenario = split_h100(parts=2)
        split, whole = scenario.gpus
        with World(scenario, tmp_path) as world:
            snapshot = world.read()

        assert list(snapshot.gpus) == [split.uuid, split.mig[0].uuid, split.mig[1].uuid, whole.uuid]
        part = (False, split.uuid, "1g.10gb", 9856 * 2**20)
        assert [(gpu.mig, gpu.parent, gpu.profile, gpu.memory_bytes) for gpu in snapshot.gpus.values()] == [
            (True, "", "", 81559 * 2**20),
            part,
            part,
            (False, "", "", 81559 * 2**20),
        ]
        assert snapshot.gpus[split.mig[0].uuid].numbers["memory_used_bytes"] == 12 * 2**20

    def test_the_split_gpu_tells_its_power_but_no_utilisation(self, tmp_path: Path) -> None:
        scenario = split_h100()
        with World(scenario, tmp_path) as world:
            numbers = world.read().gpus[scenario.gpus[0].uuid].numbers

        assert numbers["power_w"] == 70
        assert {"utilization_pct", "memory_bandwidth_pct", "encoder_pct"}.isdisjoint(numbers)

    def test_parts_tell_how_busy_they_are_by_gpm(self, tmp_path: Path) -> None:
        scenario = split_h100()
        scenario.gpus[0].mig[1].values |= {"engine_active_pct": 63, "sm_active_pct": 41}
        with World(scenario, tmp_path) as world:
            world.read()
            snapshot = world.read(5)

        part = snapshot.gpus[scenario.gpus[0].mig[1].uuid].numbers
        assert (part["utilization_pct"], part["engine_active_pct"], part["sm_active_pct"]) == (63, 63, 41)
        assert "utilization_pct" not in snapshot.gpus[scenario.gpus[0].mig[0].uuid].numbers

    def test_parts_have_their_own_processes(self, tmp_path: Path) -> None:
        scenario = split_h100()
        scenario.gpus[0].mig[0].processes = [Process(os.getpid(), 2**30)]
        with World(scenario, tmp_path) as world:
            snapshot = world.read()

        assert [one.pid for one in snapshot.gpus[scenario.gpus[0].mig[0].uuid].processes] == [os.getpid()]
        assert snapshot.gpus[scenario.gpus[0].mig[1].uuid].processes == ()

    def test_a_gpu_that_is_split_while_it_is_watched_runs_nothing_itself_any_more(
        self, tmp_path: Path
    ) -> None:
        scenario = one_gpu(processes=[Process(os.getpid(), 2**30)])
        with World(scenario, tmp_path) as world:
            world.read()
            in_mig_mode(scenario.gpus[0], parts=1)
            world.change()
            snapshot = world.read(60)

        whole, part = snapshot.gpus.values()
        assert (whole.mig, whole.processes, whole.state, part.parent) == (True, (), "ok", whole.uuid)
        assert snapshot.events == ()

    def test_a_part_that_is_taken_apart_goes_without_a_word(self, tmp_path: Path) -> None:
        scenario = split_h100(parts=2)
        with World(scenario, tmp_path) as world:
            world.read()
            removed = scenario.gpus[0].mig.pop()
            world.change()
            snapshot = world.read(60)

        assert removed.uuid not in snapshot.gpus
        assert snapshot.events == ()
