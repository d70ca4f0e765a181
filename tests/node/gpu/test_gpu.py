"""The values of GPUs, read by the real pynvml from a simulated driver: each trap of NVML, once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator import Process, Scenario
from simulator.models import h100
from tests.node.gpu.gpu_world import World
from tests.simulator.worlds import eight_h100, one_gpu
from trainhub_launch.metrics import COUNTERS, GPU_KEYS
from trainhub_node.gpu.nvml_errors import ARGUMENT_VERSION, FUNCTION_NOT_FOUND, NOT_SUPPORTED


class TestNumbers:
    def test_are_those_of_the_device_in_our_units(self, tmp_path: Path) -> None:
        values = {
            "utilization_pct": 37,
            "memory_bandwidth_pct": 21,
            "memory_used_bytes": 7 * 2**30,
            "memory_reserved_bytes": 2**29,
            "power_w": 310.5,
            "power_limit_w": 650,
            "temperature_c": 61,
            "memory_temperature_c": 72,
            "sm_clock_mhz": 1755,
            "memory_clock_mhz": 2619,
            "encoder_pct": 12,
            "decoder_pct": 34,
            "fan_pct": 44,
        }
        with World(one_gpu(values=values), tmp_path) as world:
            numbers = world.read().only.numbers

        assert {key: numbers[key] for key in values} == values

    def test_of_a_device_that_tells_everything_are_all_there_after_two_rounds(self, tmp_path: Path) -> None:
        pages = {"retired_pages_sbe": 0, "retired_pages_dbe": 0, "retired_pages_pending": 0}
        with World(one_gpu(values={"fan_pct": 30, **pages}), tmp_path) as world:
            world.read()
            snapshot = world.read(5).only

        assert set(snapshot.numbers) == set(GPU_KEYS)
        assert set(snapshot.counters) == {key for key in COUNTERS if not key.startswith("xid_")}

    def test_name_the_device_by_its_uuid_whatever_cuda_may_see(self, tmp_path: Path) -> None:
        scenario = eight_h100()
        with World(scenario, tmp_path, CUDA_VISIBLE_DEVICES=scenario.gpus[3].uuid) as world:
            snapshot = world.read()

        assert [(gpu.uuid, gpu.index) for gpu in snapshot.gpus.values()] == [
            (gpu.uuid, i) for i, gpu in enumerate(scenario.gpus)
        ]
        assert (snapshot.driver, snapshot.cuda, snapshot.trouble) == ("570.124.06", "12.8", "")

    def test_count_the_drivers_reserve_apart_as_nvidia_smi_does(self, tmp_path: Path) -> None:
        values = {"memory_used_bytes": 4 * 2**30, "memory_reserved_bytes": 2**29}
        with World(one_gpu(values=values), tmp_path) as world:
            fact = world.read().only

        assert fact.numbers["memory_used_bytes"] == 4 * 2**30
        assert fact.numbers["memory_reserved_bytes"] == 2**29
        assert fact.memory_bytes == 81559 * 2**20

    @pytest.mark.parametrize("code", [NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION])
    def test_of_memory_come_by_the_older_call_where_there_is_no_newer(
        self, tmp_path: Path, code: int
    ) -> None:
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
            "throttled_thermal_pct": 100,
            "throttled_power_pct": 100,
            "throttled_hardware_pct": 0,
        }

    def test_tell_what_slows_it_by_the_older_call_too(self, tmp_path: Path) -> None:
        removed = {"nvmlDeviceGetCurrentClocksEventReasons": 13}
        with World(one_gpu(values={"throttle_reasons": 0x4}, errors=removed), tmp_path) as world:
            assert world.read().only.numbers["throttled_power_pct"] == 100


class TestCounters:
    def test_are_those_of_the_device(self, tmp_path: Path) -> None:
        values = {
            "ecc_corrected": 5,
            "ecc_uncorrected": 2,
            "retired_pages_sbe": 3,
            "retired_pages_dbe": 1,
            "retired_pages_pending": 1,
            "remapped_rows_corrected": 11,
            "remapped_rows_uncorrected": 12,
            "remapped_rows_pending": 1,
            "remapped_rows_failed": 0,
            "pcie_replays": 6,
            "pcie_generation": 4,
            "pcie_generation_max": 5,
            "pcie_width": 8,
            "pcie_width_max": 16,
            "nvlink_crc_errors": 9,
            "nvlink_replays": 7,
        }
        with World(one_gpu(values=values), tmp_path) as world:
            report = world.read().only.counters

        assert {key: report[key] for key in values} == values

    def test_of_energy_grow_by_the_power(self, tmp_path: Path) -> None:
        with World(one_gpu(values={"power_w": 500}), tmp_path) as world:
            first = world.read().only.counters["energy_mj"]
            assert world.until(lambda snapshot: snapshot.only.counters["energy_mj"] > first, after_s=5)

    def test_are_absent_where_unsupported_and_never_zero(self, tmp_path: Path) -> None:
        gpu, missing = h100("one"), {"ecc_corrected", "pcie_replays", "nvlink_crc_errors"}
        for key in (*missing, "remapped_rows_corrected", "power_w"):
            gpu.values.pop(key, None)
        with World(Scenario([gpu]), tmp_path) as world:
            fact = world.read().only

        assert missing.isdisjoint(fact.counters)
        assert not any(key.startswith("retired_pages") for key in fact.counters), "an H100 retires none"
        assert not any(key.startswith("remapped") for key in fact.counters)
        assert "power_w" not in fact.numbers
        assert fact.counters["ecc_uncorrected"] == 0


class TestProcesses:
    def test_have_a_name_an_account_memory_and_use(self, tmp_path: Path) -> None:
        with World(one_gpu(processes=[Process(os.getpid(), 3 * 2**30, sm_pct=42)]), tmp_path) as world:
            (one,) = world.read().only.processes

        assert (one.pid, one.memory_bytes, one.sm_pct, one.run, one.rank) == (
            os.getpid(),
            3 * 2**30,
            42,
            "",
            None,
        )
        assert one.name.startswith("python")
        assert one.user

    def test_whose_memory_the_driver_cannot_tell_have_none(self, tmp_path: Path) -> None:
        with World(one_gpu(processes=[Process(os.getpid(), None)]), tmp_path) as world:
            assert world.read().only.processes[0].memory_bytes is None

    def test_that_compute_and_draw_are_told_once(self, tmp_path: Path) -> None:
        both = [
            Process(os.getpid(), 2**30),
            Process(os.getpid(), 2**30, kind="graphics"),
            Process(1, 2**20, kind="graphics"),
        ]
        with World(one_gpu(processes=both), tmp_path) as world:
            report = world.read().only.processes

        assert [(one.pid, one.memory_bytes) for one in report] == [(1, 2**20), (os.getpid(), 2**30)]

    def test_are_listed_where_their_use_cannot_be_told(self, tmp_path: Path) -> None:
        blind = one_gpu(
            processes=[Process(os.getpid(), 2**30)], unsupported={"nvmlDeviceGetProcessUtilization"}
        )
        with World(blind, tmp_path) as world:
            (one,) = world.read().only.processes

        assert (one.memory_bytes, one.sm_pct) == (2**30, None)

    def test_are_listed_by_the_older_call_where_there_is_no_newer(self, tmp_path: Path) -> None:
        older = {
            "nvmlDeviceGetComputeRunningProcesses_v3": 13,
            "nvmlDeviceGetGraphicsRunningProcesses_v3": 13,
        }
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
