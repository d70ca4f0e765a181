"""What the agent tells of real GPUs, beside nvidia-smi; and that the comparison itself would notice a lie."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import gpu_truth
from simulator import environment
from tests.hub import eventually
from tests.simulator.worlds import one_gpu
from trainhub_node.gpu.nvml.nvml_library import Gpus

VALUES = {
    "utilization_pct": 37,
    "memory_bandwidth_pct": 21,
    "memory_used_bytes": 2**30,
    "power_w": 310.5,
    "power_limit_w": 650,
    "temperature_c": 61,
    "memory_temperature_c": 72,
    "sm_clock_mhz": 1755,
    "memory_clock_mhz": 2619,
    "encoder_pct": 12,
}
ONE_GIB = 2**30


@pytest.fixture
def gpus() -> Iterator[Gpus]:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("there is no nvidia-smi: this needs a machine with an NVIDIA GPU and its driver")
    made = Gpus()
    if not made.read(time.monotonic()):
        pytest.skip(f"no GPU can be read here: {made.trouble or 'there is none'}")
    yield made
    made.close()


@pytest.mark.gpu
class TestRealGpus:
    def test_the_agent_and_nvidia_smi_agree_within_two_percent(self, gpus: Gpus) -> None:
        found = gpu_truth.compare(rounds=5)

        assert found
        assert {key: pair for key, pair in found.items() if pair.difference > gpu_truth.TOLERANCE} == {}

    def test_what_changes_by_the_second_is_known(self, gpus: Gpus) -> None:
        fact = gpus.read(time.monotonic() + 1)[0]

        assert {"memory_used_bytes", "power_w", "temperature_c", "sm_clock_mhz"} <= fact.numbers.keys()

    def test_a_process_that_takes_memory_is_listed_with_it(self, gpus: Gpus) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", f"from tests.gpu.test_truth import hold; hold({ONE_GIB})"]
        ) as holder:
            clock = iter(range(10**9))

            def is_listed() -> bool:
                # A process is listed as soon as it has a context, some MiB, before it takes its memory; in
                # some containers the driver does not tell how much that is.
                facts = gpus.read(time.monotonic() + 10 * next(clock))
                sizes = [
                    one.memory_bytes for fact in facts for one in fact.processes if one.pid == holder.pid
                ]
                return any(size is None or size >= ONE_GIB for size in sizes)

            try:
                eventually(is_listed, seconds=60)
            finally:
                holder.kill()


class TestComparison:
    def told(self, tmp_path: Path, **theirs: float) -> subprocess.CompletedProcess[str]:
        """Beside an nvidia-smi that says the same as the simulated driver, but for `theirs`."""
        scenario = one_gpu(values=VALUES)
        said = {**VALUES, **theirs}
        names = {question.theirs: said.get(question.ours) for question in gpu_truth.QUESTIONS}
        names |= {"memory.used": said["memory_used_bytes"] / 2**20}
        line = ", ".join(
            [scenario.gpus[0].uuid, *("[N/A]" if value is None else f"{value}" for value in names.values())]
        )
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho '{line}'\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
        env = {
            **os.environ,
            **environment(scenario.write(tmp_path / "scenario")),
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
        }
        argv = [sys.executable, "-m", "bench.gpu_truth", "--rounds", "1"]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)

    def test_of_the_same_values_is_content(self, tmp_path: Path) -> None:
        done = self.told(tmp_path)

        assert done.returncode == 0, done.stdout + done.stderr

    def test_notices_a_value_that_is_three_percent_off(self, tmp_path: Path) -> None:
        done = self.told(tmp_path, power_w=320)

        assert done.returncode == 1
        assert "1 more than 2% off: power_w" in done.stdout


def hold(size: int) -> None:
    """Takes so much memory on the first GPU until it is killed."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, memory = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0
    assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)) == 0
    time.sleep(300)
