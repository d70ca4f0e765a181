"""The values of GPUs, read by the real pynvml from a simulated driver: each trap of NVML, once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator import Process, Scenario
from simulator.models import a100, h100
from tests.node.gpu_world import World
from tests.simulator.worlds import eight_h100, one_gpu, split_h100
from trainhub_launch.metrics import COUNTERS, GPU_KEYS
from trainhub_node.gpu_errors import ARGUMENT_VERSION, FUNCTION_NOT_FOUND, NOT_SUPPORTED

PCIE_COUNTERS = {"field:197", "field:198"}
PCIE_OF_GPM = {"gpm:20", "gpm:21"}


class TestNumbers:
    def test_are_those_of_the_device_in_our_units(self, tmp_path: Path) -> None:
        values = {
            "utilization_pct": 37, "memory_bandwidth_pct": 21, "memory_used_bytes": 7 * 2**30, "memory_reserved_bytes": 2**29,
            "power_w": 310.5, "power_limit_w": 650, "temperature_c": 61, "memory_temperature_c": 72, "sm_clock_mhz": 1755,
            "memory_clock_mhz": 2619, "encoder_pct": 12, "decoder_pct": 34, "fan_pct": 44,
        }
        with World(one_gpu(values=values), tmp_path) as world:
            numbers = world.read().only.numbers

        assert {key: numbers[key] for key in values} == values

    def test_of_a_whole_h100_are_all_there_after_two_rounds(self, tmp_path: Path) -> None:
        with World(one_gpu(values={"fan_pct": 30}), tmp_path) as world:
            world.read()
            seen = world.read(5).only

        assert set(seen.numbers) == set(GPU_KEYS)
        assert set(seen.counters) == {key for key in COUNTERS if not key.startswith("xid_")}

    def test_name_the_device_by_its_uuid_whatever_cuda_may_see(self, tmp_path: Path) -> None:
        scenario = eight_h100()
        with World(scenario, tmp_path, CUDA_VISIBLE_DEVICES=scenario.gpus[3].uuid) as world:
            seen = world.read()

        assert [(gpu.uuid, gpu.index) for gpu in seen.gpus.values()] == [(gpu.uuid, i) for i, gpu in enumerate(scenario.gpus)]
        assert (seen.driver, seen.cuda, seen.trouble) == ("570.124.06", "12.8", "")

    def test_count_the_drivers_reserve_apart_as_nvidia_smi_does(self, tmp_path: Path) -> None:
        values = {"memory_used_bytes": 4 * 2**30, "memory_reserved_bytes": 2**29}
        with World(one_gpu(values=values), tmp_path) as world:
            fact = world.read().only

        assert fact.numbers["memory_used_bytes"] == 4 * 2**30
        assert fact.numbers["memory_reserved_bytes"] == 2**29
        assert fact.memory_bytes == 81559 * 2**20

    @pytest.mark.parametrize("code", [NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION])
    def test_of_memory_come_by_the_older_call_where_there_is_no_newer(self, tmp_path: Path, code: int) -> None:
        values = {"memory_used_bytes": 4 * 2**30, "memory_reserved_bytes": 2**29}
        with World(one_gpu(values=values, errors={"nvmlDeviceGetMemoryInfo_v2": code}), tmp_path) as world:
            fact = world.read().only

        assert fact.numbers["memory_used_bytes"] == 4 * 2**30 + 2**29
        assert "memory_reserved_bytes" not in fact.numbers
        assert fact.memory_bytes == 81559 * 2**20

    def test_of_a_memory_without_a_sensor_are_absent(self, tmp_path: Path) -> None:
        with World(one_gpu(values={"memory_temperature_c": 0}), tmp_path) as world:
            assert "memory_temperature_c" not in world.read().only.numbers

    def test_tell_what_slows_it(self, tmp_path: Path) -> None:
        with World(one_gpu(values={"throttle_reasons": 0x44}), tmp_path) as world:
            fact = world.read().only

        assert fact.counters["throttle_reasons"] == 0x44
        assert {key: value for key, value in fact.numbers.items() if key.startswith("throttled")} == {
            "throttled_thermal_pct": 100, "throttled_power_pct": 100, "throttled_hardware_pct": 0,
        }

    def test_tell_what_slows_it_by_the_older_call_too(self, tmp_path: Path) -> None:
        gone = {"nvmlDeviceGetCurrentClocksEventReasons": 13}
        with World(one_gpu(values={"throttle_reasons": 0x4}, errors=gone), tmp_path) as world:
            assert world.read().only.numbers["throttled_power_pct"] == 100


class TestCounters:
    def test_are_those_of_the_device(self, tmp_path: Path) -> None:
        values = {
            "ecc_corrected": 5, "ecc_uncorrected": 2, "retired_pages_sbe": 3, "retired_pages_dbe": 1, "retired_pages_pending": 1,
            "remapped_rows_corrected": 11, "remapped_rows_uncorrected": 12, "remapped_rows_pending": 1, "remapped_rows_failed": 0,
            "pcie_replays": 6, "pcie_generation": 4, "pcie_generation_max": 5, "pcie_width": 8, "pcie_width_max": 16,
            "nvlink_crc_errors": 9, "nvlink_replays": 7,
        }
        with World(one_gpu(values=values), tmp_path) as world:
            told = world.read().only.counters

        assert {key: told[key] for key in values} == values

    def test_of_energy_grow_by_the_power(self, tmp_path: Path) -> None:
        with World(one_gpu(values={"power_w": 500}), tmp_path) as world:
            first = world.read().only.counters["energy_mj"]
            assert world.until(lambda seen: seen.only.counters["energy_mj"] > first, after_s=5)

    def test_are_absent_where_unsupported_and_never_zero(self, tmp_path: Path) -> None:
        gpu, missing = h100("one"), {"ecc_corrected", "retired_pages_sbe", "pcie_replays", "nvlink_crc_errors"}
        for key in (*missing, "remapped_rows_corrected", "power_w"):
            del gpu.values[key]
        with World(Scenario([gpu]), tmp_path) as world:
            fact = world.read().only

        assert missing.isdisjoint(fact.counters)
        assert not any(key.startswith("remapped") for key in fact.counters)
        assert "power_w" not in fact.numbers
        assert fact.counters["ecc_uncorrected"] == 0


class TestTraffic:
    """Sent and received are never the same number here, so that one mistaken for the other shows."""

    PCIE = {"pcie_tx_bytes_s": 3e9, "pcie_rx_bytes_s": 1e9}
    NVLINK = {"nvlink_tx_bytes_s": 9e9, "nvlink_rx_bytes_s": 4e9}

    def rates(self, world: World, kind: str) -> tuple[float, float]:
        """By the simulated counters, which grow by the real clock: only their ratio means something here."""
        world.read()
        numbers = world.until(lambda seen: f"{kind}_tx_bytes_s" in seen.only.numbers, after_s=5).only.numbers
        return numbers[f"{kind}_tx_bytes_s"], numbers[f"{kind}_rx_bytes_s"]

    def test_over_pcie_is_read_from_wide_counters(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.PCIE, unsupported=PCIE_OF_GPM), tmp_path) as world:
            sent, received = self.rates(world, "pcie")

        assert sent / received == pytest.approx(3, rel=0.01)

    def test_over_pcie_is_read_from_gpm_where_there_are_no_counters(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.PCIE, unsupported=PCIE_COUNTERS), tmp_path) as world:
            assert self.rates(world, "pcie") == pytest.approx((3e9, 1e9))

    def test_over_pcie_is_read_by_the_slow_call_where_there_is_no_other(self, tmp_path: Path) -> None:
        with World(Scenario([a100("one", values=self.PCIE, unsupported=PCIE_COUNTERS)]), tmp_path) as world:
            assert self.rates(world, "pcie") == pytest.approx((3e9, 1e9))

    def test_over_pcie_holds_up_no_other_reading_even_where_the_call_hangs(self, tmp_path: Path) -> None:
        gpus = [a100("one", unsupported=PCIE_COUNTERS, delays_ms={"nvmlDeviceGetPcieThroughput": 60_000}), a100("two")]
        world = World(Scenario(gpus), tmp_path)
        for _ in range(3):
            seen = world.read(5)

        assert [gpu.numbers["temperature_c"] for gpu in seen.gpus.values()] == [30, 30]
        assert "pcie_tx_bytes_s" not in seen.gpus[gpus[0].uuid].numbers
        world.process.kill()
        world.process.communicate()

    def test_over_pcie_is_absent_where_no_call_tells(self, tmp_path: Path) -> None:
        refused = PCIE_COUNTERS | {"nvmlDeviceGetPcieThroughput"}
        with World(Scenario([a100("one", unsupported=refused)]), tmp_path) as world:
            world.read()
            world.until(lambda _: world.lines("does not tell pcie_tx_bytes_s"), after_s=5)
            assert "pcie_tx_bytes_s" not in world.read(5).only.numbers

    def test_over_nvlink_is_the_sum_of_its_links(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.NVLINK), tmp_path) as world:
            sent, received = self.rates(world, "nvlink")

        assert sent / received == pytest.approx(9 / 4, rel=0.01)

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
        "engine_active_pct": 91, "sm_active_pct": 82, "sm_occupancy_pct": 43, "tensor_active_pct": 54, "dram_active_pct": 65,
        "fp64_active_pct": 6, "fp32_active_pct": 17, "fp16_active_pct": 28,
    }

    def test_comes_with_the_second_sample(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.VALUES), tmp_path) as world:
            first, second = world.read().only.numbers, world.read(5).only.numbers

        assert self.VALUES.keys().isdisjoint(first)
        assert {key: second[key] for key in self.VALUES} == pytest.approx(self.VALUES)

    def test_leaves_out_single_metrics_that_the_device_has_not(self, tmp_path: Path) -> None:
        with World(one_gpu(values=self.VALUES, unsupported={"gpm:11"}), tmp_path) as world:
            world.read()
            told = world.read(5).only.numbers

        assert "fp64_active_pct" not in told
        assert told["fp32_active_pct"] == 17

    def test_is_absent_before_hopper(self, tmp_path: Path) -> None:
        with World(Scenario([a100("one")]), tmp_path) as world:
            world.read()
            assert self.VALUES.keys().isdisjoint(world.read(5).only.numbers)


class TestMig:
    def test_parts_are_devices_of_their_own(self, tmp_path: Path) -> None:
        scenario = split_h100(parts=2)
        split, whole = scenario.gpus
        with World(scenario, tmp_path) as world:
            seen = world.read()

        assert list(seen.gpus) == [split.uuid, split.mig[0].uuid, split.mig[1].uuid, whole.uuid]
        part = (False, split.uuid, "1g.10gb", 9856 * 2**20)
        assert [(gpu.mig, gpu.parent, gpu.profile, gpu.memory_bytes) for gpu in seen.gpus.values()] == [
            (True, "", "", 81559 * 2**20), part, part, (False, "", "", 81559 * 2**20),
        ]
        assert seen.gpus[split.mig[0].uuid].numbers["memory_used_bytes"] == 12 * 2**20

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
            seen = world.read(5)

        part = seen.gpus[scenario.gpus[0].mig[1].uuid].numbers
        assert (part["utilization_pct"], part["engine_active_pct"], part["sm_active_pct"]) == (63, 63, 41)
        assert "utilization_pct" not in seen.gpus[scenario.gpus[0].mig[0].uuid].numbers

    def test_parts_have_their_own_processes(self, tmp_path: Path) -> None:
        scenario = split_h100()
        scenario.gpus[0].mig[0].processes = [Process(os.getpid(), 2**30)]
        with World(scenario, tmp_path) as world:
            seen = world.read()

        assert [one.pid for one in seen.gpus[scenario.gpus[0].mig[0].uuid].processes] == [os.getpid()]
        assert seen.gpus[scenario.gpus[0].mig[1].uuid].processes == ()

    def test_a_part_that_is_taken_apart_goes_without_a_word(self, tmp_path: Path) -> None:
        scenario = split_h100(parts=2)
        with World(scenario, tmp_path) as world:
            world.read()
            gone = scenario.gpus[0].mig.pop()
            world.change()
            seen = world.read(5)

        assert gone.uuid not in seen.gpus
        assert seen.events == ()


class TestProcesses:
    def test_have_a_name_an_account_memory_and_use(self, tmp_path: Path) -> None:
        with World(one_gpu(processes=[Process(os.getpid(), 3 * 2**30, sm_pct=42)]), tmp_path) as world:
            (one,) = world.read().only.processes

        assert (one.pid, one.memory_bytes, one.sm_pct, one.run, one.rank) == (os.getpid(), 3 * 2**30, 42, "", None)
        assert one.name.startswith("python")
        assert one.user

    def test_whose_memory_the_driver_cannot_tell_have_none(self, tmp_path: Path) -> None:
        with World(one_gpu(processes=[Process(os.getpid(), None)]), tmp_path) as world:
            assert world.read().only.processes[0].memory_bytes is None

    def test_that_compute_and_draw_are_told_once(self, tmp_path: Path) -> None:
        both = [Process(os.getpid(), 2**30), Process(os.getpid(), 2**30, kind="graphics"), Process(1, 2**20, kind="graphics")]
        with World(one_gpu(processes=both), tmp_path) as world:
            told = world.read().only.processes

        assert [(one.pid, one.memory_bytes) for one in told] == [(1, 2**20), (os.getpid(), 2**30)]

    def test_are_listed_where_their_use_cannot_be_told(self, tmp_path: Path) -> None:
        blind = one_gpu(processes=[Process(os.getpid(), 2**30)], unsupported={"nvmlDeviceGetProcessUtilization"})
        with World(blind, tmp_path) as world:
            (one,) = world.read().only.processes

        assert (one.memory_bytes, one.sm_pct) == (2**30, None)

    def test_are_listed_by_the_older_call_where_there_is_no_newer(self, tmp_path: Path) -> None:
        older = {"nvmlDeviceGetComputeRunningProcesses_v3": 13, "nvmlDeviceGetGraphicsRunningProcesses_v3": 13}
        with World(one_gpu(processes=[Process(os.getpid(), 2**30)], errors=older), tmp_path) as world:
            assert [one.pid for one in world.read().only.processes] == [os.getpid()]

    def test_that_have_ended_are_gone_with_the_next_list(self, tmp_path: Path) -> None:
        with World(one_gpu(processes=[Process(os.getpid(), 2**30)]), tmp_path) as world:
            world.read()
            world.scenario.gpus[0].processes = ()
            world.change()
            assert world.read(5).only.processes == ()

    def test_of_which_nothing_is_told_any_more_are_forgotten_after_two_rhythms(self, tmp_path: Path) -> None:
        with World(one_gpu(processes=[Process(os.getpid(), 2**30)]), tmp_path) as world:
            world.read()
            world.scenario.gpus[0].errors = {"nvmlDeviceGetComputeRunningProcesses": 999}
            world.change()
            assert world.read(5).only.processes
            assert world.read(6).only.processes == ()
