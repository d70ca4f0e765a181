"""What the real pynvml reads of simulated GPUs is what the scenario says."""

from __future__ import annotations

import ctypes
import inspect
import re
from pathlib import Path

import pynvml
import pytest

from simulator import Scenario, library
from simulator.models import h100, uuid_of
from tests.simulator.worlds import ask, eight_h100, one_gpu

PROJECT = Path(__file__).resolve().parents[2]


class TestIdentity:
    def test_a_machine_with_eight_has_eight_by_index_and_by_uuid(self, tmp_path: Path) -> None:
        code = """
nvml.nvmlInit()
handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
uuids = [nvml.nvmlDeviceGetUUID(h) for h in handles]
back = [nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(u)) for u in uuids]
tell(uuids=uuids, back=back, name=nvml.nvmlDeviceGetName(handles[3]),
     minor=nvml.nvmlDeviceGetMinorNumber(handles[3]),
     bus=nvml.nvmlDeviceGetPciInfo(handles[3]).busId,
     unknown=attempt(nvml.nvmlDeviceGetHandleByUUID, "GPU-none"),
     beyond=attempt(nvml.nvmlDeviceGetHandleByIndex, 8),
     capability=nvml.nvmlDeviceGetCudaComputeCapability(handles[0]))
"""
        told = ask(eight_h100().write(tmp_path / "scenario"), code)
        assert told["uuids"] == [uuid_of(f"node gpu {index}") for index in range(8)]
        assert told["back"] == list(range(8))
        assert (told["name"], told["minor"], told["bus"]) == ("NVIDIA H100 80GB HBM3", 3, "00000000:13:00.0")
        assert (told["unknown"], told["beyond"]) == ("error 6", "error 2")
        assert told["capability"] == [9, 0]

    def test_versions_are_those_of_the_scenario(self, tmp_path: Path) -> None:
        code = (
            "nvml.nvmlInit(); tell(d=nvml.nvmlSystemGetDriverVersion(), "
            "c=nvml.nvmlSystemGetCudaDriverVersion())"
        )
        told = ask(Scenario(driver="535.1", cuda=12020).write(tmp_path / "scenario"), code)
        assert told == {"d": "535.1", "c": 12020}

    def test_calls_before_init_and_after_shutdown_are_refused(self, tmp_path: Path) -> None:
        code = """
early = attempt(nvml._LoadNvmlLibrary) or attempt(nvml.nvmlDeviceGetCount)
h = first(); nvml.nvmlShutdown()
tell(early=early, late=attempt(nvml.nvmlDeviceGetPowerUsage, h))
"""
        assert ask(one_gpu().write(tmp_path / "scenario"), code) == {"early": "error 1", "late": "error 1"}


class TestValues:
    def test_each_call_tells_its_own_value(self, tmp_path: Path) -> None:
        values = {
            "utilization_pct": 37,
            "memory_bandwidth_pct": 21,
            "power_w": 310.5,
            "power_limit_w": 650,
            "power_management_limit_w": 700,
            "temperature_c": 61,
            "sm_clock_mhz": 1755,
            "memory_clock_mhz": 2600,
            "graphics_clock_mhz": 1760,
            "video_clock_mhz": 1500,
            "throttle_reasons": 0x44,
            "encoder_pct": 12,
            "decoder_pct": 13,
            "sampling_period_us": 99,
            "fan_pct": 55,
            "pcie_replays": 5,
            "pcie_generation": 4,
            "pcie_generation_max": 5,
            "pcie_width": 8,
            "pcie_width_max": 16,
        }
        code = """
h = first(); d = nvml
util = d.nvmlDeviceGetUtilizationRates(h)
tell(utilization_pct=util.gpu, memory_bandwidth_pct=util.memory, power_w=d.nvmlDeviceGetPowerUsage(h) / 1000,
     power_limit_w=d.nvmlDeviceGetEnforcedPowerLimit(h) / 1000,
     power_management_limit_w=d.nvmlDeviceGetPowerManagementLimit(h) / 1000,
     temperature_c=d.nvmlDeviceGetTemperature(h, d.NVML_TEMPERATURE_GPU),
     sm_clock_mhz=d.nvmlDeviceGetClockInfo(h, d.NVML_CLOCK_SM),
     memory_clock_mhz=d.nvmlDeviceGetClockInfo(h, d.NVML_CLOCK_MEM),
     graphics_clock_mhz=d.nvmlDeviceGetClockInfo(h, 0),
     video_clock_mhz=d.nvmlDeviceGetClockInfo(h, d.NVML_CLOCK_VIDEO),
     throttle_reasons=d.nvmlDeviceGetCurrentClocksEventReasons(h),
     encoder_pct=d.nvmlDeviceGetEncoderUtilization(h)[0], decoder_pct=d.nvmlDeviceGetDecoderUtilization(h)[0],
     sampling_period_us=d.nvmlDeviceGetEncoderUtilization(h)[1], fan_pct=d.nvmlDeviceGetFanSpeed(h),
     pcie_replays=d.nvmlDeviceGetPcieReplayCounter(h),
     pcie_generation=d.nvmlDeviceGetCurrPcieLinkGeneration(h),
     pcie_generation_max=d.nvmlDeviceGetMaxPcieLinkGeneration(h),
     pcie_width=d.nvmlDeviceGetCurrPcieLinkWidth(h),
     pcie_width_max=d.nvmlDeviceGetMaxPcieLinkWidth(h))
"""
        assert ask(one_gpu(values=values).write(tmp_path / "scenario"), code) == values

    def test_version_1_counts_the_reserve_as_used_and_version_2_apart(self, tmp_path: Path) -> None:
        values = {"memory_total_bytes": 1000, "memory_used_bytes": 600, "memory_reserved_bytes": 100}
        code = """
h = first()
one, two = nvml.nvmlDeviceGetMemoryInfo(h), nvml.nvmlDeviceGetMemoryInfo(h, version=nvml.nvmlMemory_v2)
tell(one=[one.total, one.used, one.free], two=[two.total, two.used, two.free, two.reserved])
"""
        told = ask(one_gpu(values=values).write(tmp_path / "scenario"), code)
        assert told == {"one": [1000, 700, 300], "two": [1000, 600, 300, 100]}

    def test_sent_and_received_over_pcie_differ(self, tmp_path: Path) -> None:
        code = """
h = first(); began = time.monotonic()
tell(tx=nvml.nvmlDeviceGetPcieThroughput(h, nvml.NVML_PCIE_UTIL_TX_BYTES),
     rx=nvml.nvmlDeviceGetPcieThroughput(h, nvml.NVML_PCIE_UTIL_RX_BYTES), took=time.monotonic() - began)
"""
        told = ask(
            one_gpu(values={"pcie_tx_bytes_s": 7e6, "pcie_rx_bytes_s": 9e6}).write(tmp_path / "scenario"),
            code,
        )
        assert (told["tx"], told["rx"]) == (7000, 9000)
        assert told["took"] >= 0.04

    def test_health_is_told_counter_by_counter(self, tmp_path: Path) -> None:
        values = {
            "ecc_corrected": 11,
            "ecc_uncorrected": 2,
            "ecc_corrected_volatile": 3,
            "ecc_uncorrected_volatile": 1,
            "retired_pages_sbe": 4,
            "retired_pages_dbe": 6,
            "retired_pages_pending": 1,
            "remapped_rows_corrected": 7,
            "remapped_rows_uncorrected": 8,
            "remapped_rows_pending": 1,
            "remapped_rows_failed": 1,
        }
        code = """
h = first()
place = nvml.NVML_MEMORY_LOCATION_DEVICE_MEMORY
tell(aggregate=[nvml.nvmlDeviceGetMemoryErrorCounter(h, kind, 1, place) for kind in (0, 1)],
     volatile=[nvml.nvmlDeviceGetTotalEccErrors(h, kind, 0) for kind in (0, 1)],
     pages=[len(nvml.nvmlDeviceGetRetiredPages_v2(h, cause)) for cause in (0, 1)],
     pending=nvml.nvmlDeviceGetRetiredPagesPendingStatus(h), rows=nvml.nvmlDeviceGetRemappedRows(h))
"""
        told = ask(one_gpu(values=values).write(tmp_path / "scenario"), code)
        assert told == {
            "aggregate": [11, 2],
            "volatile": [3, 1],
            "pages": [4, 6],
            "pending": 1,
            "rows": [7, 8, 1, 1],
        }

    def test_what_grows_follows_its_rate_and_never_goes_back(self, tmp_path: Path) -> None:
        values = {
            "power_w": 500,
            "nvlink_tx_bytes_s": 18 * 1024 * 1000,
            "nvlink_links": 18,
            "energy_mj": 1_000_000,
        }
        scenario = one_gpu(values=values)
        scenario.start -= 100
        code = """
h = first()
def look(): return nvml.nvmlDeviceGetFieldValues(h,
    [(nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 4)])[0].value.ullVal
energy, before, began = nvml.nvmlDeviceGetTotalEnergyConsumption(h), look(), time.monotonic()
wait()
tell(energy=energy, rate=(look() - before) / (time.monotonic() - began),
     grows=nvml.nvmlDeviceGetTotalEnergyConsumption(h) > energy)
"""
        told = ask(scenario.write(tmp_path / "scenario"), code.replace("wait()", "time.sleep(0.5)"))
        assert 50_000_000 < told["energy"] - 1_000_000 < 60_000_000
        assert told["rate"] == pytest.approx(1000, rel=0.1)
        assert told["grows"]

    def test_fields_answer_for_themselves(self, tmp_path: Path) -> None:
        gpu = h100(
            "node gpu 0",
            values={"memory_temperature_c": 71, "nvlink_crc_errors": 3},
            unsupported={"field:91"},
        )
        code = """
h = first()
ids = [nvml.NVML_FI_DEV_MEMORY_TEMP, nvml.NVML_FI_DEV_NVLINK_LINK_COUNT,
    nvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
       (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 18), 307]
tell(fields=[[v.nvmlReturn, v.value.uiVal] for v in nvml.nvmlDeviceGetFieldValues(h, ids)])
"""
        told = ask(Scenario([gpu]).write(tmp_path / "scenario"), code)
        assert told["fields"] == [[0, 71], [3, 0], [0, 3], [2, 0], [3, 0]]


def test_every_nvml_function_that_a_node_calls_is_there() -> None:
    simulated = ctypes.CDLL(str(library() / "libnvidia-ml.so.1"))
    sources = "".join(path.read_text() for path in (PROJECT / "trainhub_node").rglob("*.py"))
    called = {
        name for name in re.findall(r"\bnvml\w+", sources) if inspect.isfunction(getattr(pynvml, name, None))
    }
    wanted = {symbol for name in called for symbol in _symbols(name)}
    assert wanted
    assert [symbol for symbol in sorted(wanted) if not hasattr(simulated, symbol)] == []


def _symbols(name: str) -> set[str]:
    """The library's functions that one of pynvml's looks up, itself or through another."""
    source = inspect.getsource(inspect.unwrap(getattr(pynvml, name)))
    found = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', source))
    inner = set(re.findall(r"return (nvml\w+)\(", source)) - {name}
    return found.union(
        *(_symbols(other) for other in inner if inspect.isfunction(getattr(pynvml, other, None)))
    )
