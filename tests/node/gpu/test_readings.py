"""When a GPU is asked for what, how long an answer stands, and what follows from counters and bits."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import pynvml
import pytest

from trainhub_launch.metrics import COUNTERS, GPU_KEYS
from trainhub_node.gpu import reader
from trainhub_node.gpu.background_reader import BackgroundReader
from trainhub_node.gpu.library import ListedGpu
from trainhub_node.gpu.nvml.nvml_library import NvmlLibrary
from trainhub_node.gpu.nvml_errors import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    DeviceLost,
    LibraryLost,
    QueryFailed,
    from_code,
)
from trainhub_node.gpu.readings import CounterRates, Reading, Readings, throttle_numbers


class Device:
    """Answers with what stands in `values`; an error there is raised. `asked`: how often, by key."""

    def __init__(self, **values: float | QueryFailed | None) -> None:
        self.values = values
        self.asked = dict.fromkeys(values, 0)
        self.said: set[tuple[str, str]] = set()
        self.readings = self.again()

    def again(self) -> Readings:
        readings = [
            Reading((key,), lambda _, key=key: self._answer(key))  # type: ignore[misc]
            for key in self.values
        ]
        return Readings("GPU-1", readings, self.said)

    def at(self, now: float) -> dict[str, float]:
        self.readings.refresh(now)
        return {**self.readings.numbers(now), **self.readings.counters(now)}

    def _answer(self, key: str) -> Mapping[str, float]:
        self.asked[key] += 1
        value = self.values[key]
        if isinstance(value, QueryFailed):
            raise value
        return {} if value is None else {key: value}


def error(code: int) -> QueryFailed:
    return from_code(code, f"code {code}")


class TestRhythm:
    def test_each_metric_is_read_in_its_own(self) -> None:
        device = Device(power_w=300, encoder_pct=5, ecc_corrected=0, energy_mj=7, throttle_reasons=0)

        for second in range(120):
            device.readings.refresh(float(second))

        assert device.asked == {
            "power_w": 120,
            "encoder_pct": 24,
            "ecc_corrected": 2,
            "energy_mj": 24,
            "throttle_reasons": 120,
        }

    def test_a_reading_stands_until_the_next(self) -> None:
        device = Device(encoder_pct=5)
        device.at(0)
        device.values["encoder_pct"] = 9

        assert device.at(4) == {"encoder_pct": 5}
        assert device.at(5) == {"encoder_pct": 9}

    def test_who_asks_a_little_early_is_not_put_off_by_a_whole_round(self) -> None:
        device = Device(power_w=300)
        device.at(10.0)
        device.at(10.9)

        assert device.asked["power_w"] == 2

    def test_the_last_answer_stands_for_two_rhythms_and_no_longer(self) -> None:
        device = Device(encoder_pct=5, power_w=300)
        device.at(0)
        device.values |= {"encoder_pct": error(UNKNOWN), "power_w": error(UNKNOWN)}

        assert device.at(2) == {"encoder_pct": 5, "power_w": 300}
        assert device.at(3) == {"encoder_pct": 5}
        assert device.at(10) == {"encoder_pct": 5}
        assert device.at(11) == {}

    def test_what_an_answer_leaves_out_is_absent_at_once(self) -> None:
        device = Device(encoder_pct=5)
        device.at(0)
        device.values["encoder_pct"] = None

        assert device.at(5) == {}


class TestFailures:
    def test_one_hides_no_other(self) -> None:
        device = Device(power_w=error(UNKNOWN), encoder_pct=error(NOT_SUPPORTED), temperature_c=50)

        assert device.at(0) == {"temperature_c": 50}
        assert device.at(1) == {"temperature_c": 50}

    def test_of_our_own_making_hide_no_other_either(self, caplog: pytest.LogCaptureFixture) -> None:
        broken = Reading(("power_w",), lambda _: {"power_w": 1 / 0})
        readings = Readings("GPU-1", [broken, Reading(("fan_pct",), lambda _: {"fan_pct": 3})], set())

        readings.refresh(0)
        assert readings.numbers(0) == {"fan_pct": 3}
        assert "ZeroDivisionError" in caplog.text

    @pytest.mark.parametrize("code", [NOT_SUPPORTED, 13, NO_PERMISSION])
    def test_what_is_not_supported_is_asked_once(self, code: int) -> None:
        device = Device(power_w=error(code))
        for second in range(10):
            device.readings.refresh(second)

        assert device.asked["power_w"] == 1

    def test_any_other_is_tried_again_and_ends_by_itself(self) -> None:
        device = Device(power_w=error(UNKNOWN))
        device.at(0)
        device.values["power_w"] = 300

        assert device.at(1) == {"power_w": 300}

    def test_what_is_not_known_is_absent_and_not_zero(self) -> None:
        assert Device(power_w=error(NOT_SUPPORTED), encoder_pct=None).at(0) == {}
        assert Device(power_w=0).at(0) == {"power_w": 0}

    def test_are_said_once_for_each_device_and_metric(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        device = Device(
            power_w=error(UNKNOWN), fan_pct=error(NOT_SUPPORTED), encoder_pct=error(NO_PERMISSION)
        )
        for second in range(100):
            device.readings.refresh(second)
        device.readings = device.again()
        device.readings.refresh(200)

        assert [(record.levelname, record.message) for record in caplog.records] == [
            ("WARNING", "GPU GPU-1: reading power_w failed: code 999 (logged once)"),
            ("DEBUG", "GPU GPU-1 does not support fan_pct: code 3"),
            ("WARNING", "GPU GPU-1: this account may not read encoder_pct"),
        ]

    def test_of_the_device_or_the_library_are_the_callers_to_judge(self) -> None:
        with pytest.raises(DeviceLost):
            Device(power_w=error(GPU_IS_LOST)).at(0)
        with pytest.raises(LibraryLost):
            Device(power_w=error(DRIVER_NOT_LOADED)).at(0)


class TestRates:
    def test_are_growth_by_time(self) -> None:
        rates = CounterRates()

        assert rates.rate("tx", 1000, 10) is None
        assert rates.rate("tx", 6000, 15) == 1000

    def test_are_absent_once_after_a_reset_or_a_wrap(self) -> None:
        rates = CounterRates()
        rates.rate("tx", 2**64 - 5, 0)

        assert rates.rate("tx", 100, 5) is None
        assert rates.rate("tx", 600, 10) == 100

    def test_are_absent_when_the_clock_stood_still(self) -> None:
        rates = CounterRates()
        rates.rate("tx", 100, 5)

        assert rates.rate("tx", 200, 5) is None

    def test_of_several_links_are_their_sum(self) -> None:
        rates = CounterRates()
        rates.total("tx", {0: 0, 1: 0}, 0)

        assert rates.total("tx", {0: 50, 1: 100}, 5) == 30

    def test_of_several_links_are_absent_once_when_one_began_anew(self) -> None:
        rates = CounterRates()
        rates.total("tx", {0: 100, 1: 100}, 0)

        assert rates.total("tx", {0: 150, 1: 50}, 5) is None
        assert rates.total("tx", {0: 200, 1: 100}, 10) == 20


class TestThrottling:
    @pytest.mark.parametrize(
        ("mask", "slowed"),
        [
            (0, set()),
            (pynvml.nvmlClocksEventReasonGpuIdle, set()),
            (pynvml.nvmlClocksEventReasonSyncBoost, set()),
            (pynvml.nvmlClocksEventReasonSwThermalSlowdown, {"thermal"}),
            (pynvml.nvmlClocksEventReasonHwThermalSlowdown, {"thermal"}),
            (pynvml.nvmlClocksEventReasonSwPowerCap, {"power"}),
            (pynvml.nvmlClocksEventReasonHwSlowdown, {"hardware"}),
            (pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown, {"hardware"}),
            (
                pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonHwThermalSlowdown,
                {"power", "thermal"},
            ),
        ],
    )
    def test_reasons_are_a_hundred_or_nothing_each(self, mask: int, slowed: set[str]) -> None:
        report = throttle_numbers(mask)

        assert report.pop("throttle_reasons") == mask
        assert report == {
            f"throttled_{kind}_pct": 100 if kind in slowed else 0 for kind in ("thermal", "power", "hardware")
        }


class TestTable:
    def table(self, **changes: str) -> list[Reading]:
        bare = ListedGpu(uuid="GPU-1", index=0, name="GPU", handle=None, handle_id=1)
        gpu = replace(bare, **changes)  # type: ignore[arg-type]
        return reader.GpuReader(gpu, NvmlLibrary(), BackgroundReader(5)).readings()

    def test_every_metric_and_counter_is_read_exactly_once(self) -> None:
        read = [key for reading in self.table() for key in reading.keys]

        assert sorted(read) == sorted([*GPU_KEYS, *(key for key in COUNTERS if not key.startswith("xid_"))])

    def test_what_is_read_together_has_one_rhythm(self) -> None:
        for reading in self.table():
            assert {GPU_KEYS[key].every_s for key in reading.keys if key in GPU_KEYS} <= {reading.every_s}

    def test_of_a_mig_device_is_its_memory_and_its_profile(self) -> None:
        assert [reading.name for reading in self.table(parent="GPU-0")] == [
            "memory_used_bytes",
            "engine_active_pct",
        ]

    def test_numbers_of_nvml_are_those_of_its_header(self) -> None:
        sent, received, _ = reader.NVLINK_DATA_FIELDS
        newer = (pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES)

        assert (sent, received) == (
            pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
            pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
        )
        assert reader.NVLINK_COUNT_FIELDS[:2] == newer
        assert reader.LINK_COUNT[0] == pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT
        assert reader.PCIE_TX[0] == pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES
        assert reader.PCIE_RX[0] == pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES
        assert reader.GPM_PCIE_TX == pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC
        assert reader.GPM_PCIE_RX == pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC
        assert reader.GPM == {
            pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL: "engine_active_pct",
            pynvml.NVML_GPM_METRIC_SM_UTIL: "sm_active_pct",
            pynvml.NVML_GPM_METRIC_SM_OCCUPANCY: "sm_occupancy_pct",
            pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL: "tensor_active_pct",
            pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL: "dram_active_pct",
            pynvml.NVML_GPM_METRIC_FP64_UTIL: "fp64_active_pct",
            pynvml.NVML_GPM_METRIC_FP32_UTIL: "fp32_active_pct",
            pynvml.NVML_GPM_METRIC_FP16_UTIL: "fp16_active_pct",
        }

    def test_codes_of_errors_are_those_of_its_header(self) -> None:
        unsupported = {
            pynvml.NVML_ERROR_NOT_SUPPORTED,
            pynvml.NVML_ERROR_NO_PERMISSION,
            pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        }
        lost = {
            pynvml.NVML_ERROR_GPU_IS_LOST,
            pynvml.NVML_ERROR_RESET_REQUIRED,
            pynvml.NVML_ERROR_GPU_NOT_FOUND,
        }
        library = {
            pynvml.NVML_ERROR_UNINITIALIZED,
            pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
            pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
            pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        }
        assert {type(error(code)).__name__ for code in unsupported} == {"QueryUnsupported"}
        assert {type(error(code)).__name__ for code in lost} == {"DeviceLost"}
        assert {type(error(code)).__name__ for code in library} == {"LibraryLost"}
        assert type(error(pynvml.NVML_ERROR_UNKNOWN)) is QueryFailed
