"""GPUs in parts, and the profiling counters."""

from __future__ import annotations

from pathlib import Path

from tests.simulator.worlds import ask, one_gpu, split_h100, two_a100


class TestMig:
    def test_a_gpu_in_parts_names_them_and_their_parent(self, tmp_path: Path) -> None:
        scenario = split_h100(parts=2)
        code = """
h = first(); parts = [nvml.nvmlDeviceGetMigDeviceHandleByIndex(h, i) for i in range(2)]
tell(mode=nvml.nvmlDeviceGetMigMode(h), most=nvml.nvmlDeviceGetMaxMigDeviceCount(h),
     beyond=attempt(nvml.nvmlDeviceGetMigDeviceHandleByIndex, h, 2),
     uuids=[nvml.nvmlDeviceGetUUID(p) for p in parts], names=[nvml.nvmlDeviceGetName(p) for p in parts],
     parents=[nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(p)) for p in parts],
     instances=[nvml.nvmlDeviceGetGpuInstanceId(p) for p in parts],
     memory=nvml.nvmlDeviceGetMemoryInfo(parts[0]).total,
     attributes=nvml.nvmlDeviceGetAttributes(parts[0]).memorySizeMB, count=nvml.nvmlDeviceGetCount(),
     whole=nvml.nvmlDeviceGetMigMode(nvml.nvmlDeviceGetHandleByIndex(1)))
"""
        told = ask(scenario.write(tmp_path / "scenario"), code)
        parts = scenario.gpus[0].mig
        assert (told["mode"], told["most"], told["beyond"], told["count"]) == ([1, 1], 7, "error 6", 2)
        assert told["uuids"] == [part.uuid for part in parts]
        assert told["names"] == ["NVIDIA H100 80GB HBM3 MIG 1g.10gb"] * 2
        assert told["parents"] == [scenario.gpus[0].uuid] * 2
        assert (told["instances"], told["attributes"], told["memory"]) == ([7, 8], 9856, 9856 * 2**20)
        assert told["whole"] == [0, 0]

    def test_a_gpu_in_parts_tells_no_utilisation_and_its_parts_no_power(self, tmp_path: Path) -> None:
        code = """
h = first(); part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(h, 0)
tell(whole=[attempt(nvml.nvmlDeviceGetUtilizationRates, h), attempt(nvml.nvmlDeviceGetEncoderUtilization, h),
            nvml.nvmlDeviceGetPowerUsage(h)],
     part=[attempt(nvml.nvmlDeviceGetUtilizationRates, part), attempt(nvml.nvmlDeviceGetPowerUsage, part)])
"""
        told = ask(split_h100().write(tmp_path / "scenario"), code)
        assert told == {"whole": ["error 3", "error 3", 70_000], "part": ["error 3", "error 2"]}


MEASURE = """
h = first(); samples = [nvml.nvmlGpmSampleAlloc() for _ in range(2)]
def measure(ids, get):
    for sample in samples:
        get(sample); time.sleep(0.01)
    asked = nvml.c_nvmlGpmMetricsGet_t(); asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
    asked.sample1, asked.sample2, asked.numMetrics = samples[0], samples[1], len(ids)
    for place, one in enumerate(ids): asked.metrics[place].metricId = one
    nvml.nvmlGpmMetricsGet(asked)
    return [[asked.metrics[i].nvmlReturn, asked.metrics[i].value] for i in range(len(ids))]
"""


class TestProfiling:
    def test_an_h100_tells_it_metric_by_metric(self, tmp_path: Path) -> None:
        values = {"sm_active_pct": 62.5, "tensor_active_pct": 31.25, "pcie_tx_bytes_s": 3 * 2**20}
        code = (
            MEASURE
            + """
names = ("SM_UTIL", "ANY_TENSOR_UTIL", "PCIE_TX_PER_SEC", "FP64_UTIL")
ids = [getattr(nvml, f"NVML_GPM_METRIC_{name}") for name in names]
tell(support=nvml.nvmlGpmQueryDeviceSupport(h).isSupportedDevice,
    got=measure(ids, lambda s: nvml.nvmlGpmSampleGet(h, s)))
"""
        )
        told = ask(one_gpu(values=values, unsupported={"gpm:11"}).write(tmp_path / "scenario"), code)
        assert told["support"] == 1
        assert told["got"][:3] == [[0, 62.5], [0, 31.25], [0, 3.0]]
        assert told["got"][3][0] == 3

    def test_an_a100_has_none(self, tmp_path: Path) -> None:
        code = (
            MEASURE
            + """
tell(support=nvml.nvmlGpmQueryDeviceSupport(h).isSupportedDevice,
    got=attempt(nvml.nvmlGpmSampleGet, h, samples[0]))
"""
        )
        assert ask(two_a100().write(tmp_path / "scenario"), code) == {"support": 0, "got": "error 3"}

    def test_a_mig_device_is_measured_by_its_instance(self, tmp_path: Path) -> None:
        scenario = split_h100()
        scenario.gpus[0].mig[1].values["sm_active_pct"] = 44
        code = MEASURE + "tell(got=measure([2], lambda s: nvml.nvmlGpmMigSampleGet(h, 8, s)))"
        assert ask(scenario.write(tmp_path / "scenario"), code) == {"got": [[0, 44.0]]}
