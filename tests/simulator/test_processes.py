"""Who is on a GPU, and what a GPU does while it is held."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from simulator import Process, Scenario, WhileHeld
from simulator.models import h100, in_mig_mode, works_while_held
from tests.hub import eventually
from tests.simulator.worlds import ask, one_gpu, split_h100

LIST = """
def processes(h, kind="Compute"):
    return [[p.pid, p.usedGpuMemory] for p in getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses")(h)]
"""


class TestList:
    def test_it_is_the_scenarios_with_memory_where_it_can_be_told(self, tmp_path: Path) -> None:
        listed = [Process(11, 4096), Process(12, None), Process(13, 8192, kind="graphics")]
        code = LIST + "h = first(); tell(compute=processes(h), graphics=processes(h, 'Graphics'))"
        told = ask(one_gpu(processes=listed).write(tmp_path / "scenario"), code)
        assert told == {"compute": [[11, 4096], [12, None]], "graphics": [[13, 8192]]}

    def test_an_idle_gpu_has_none(self, tmp_path: Path) -> None:
        code = LIST + (
            "h = first(); tell(compute=processes(h), use=attempt(nvml.nvmlDeviceGetProcessUtilization, h, 0))"
        )
        assert ask(one_gpu().write(tmp_path / "scenario"), code) == {"compute": [], "use": "error 6"}

    def test_use_is_told_for_each_and_once(self, tmp_path: Path) -> None:
        code = """
h = first(); told = nvml.nvmlDeviceGetProcessUtilization(h, 0)
tell(use=[[s.pid, s.smUtil, s.memUtil, s.encUtil, s.decUtil] for s in told],
     newer=attempt(nvml.nvmlDeviceGetProcessUtilization, h, max(s.timeStamp for s in told) + 3_600_000_000))
"""
        listed = [
            Process(11, sm_pct=60, memory_pct=30, encoder_pct=1, decoder_pct=2),
            Process(12, sm_pct=5, memory_pct=3),
        ]
        told = ask(one_gpu(processes=listed).write(tmp_path / "scenario"), code)
        assert told == {"use": [[11, 60, 30, 1, 2], [12, 5, 3, 0, 0]], "newer": "error 6"}

    def test_a_process_on_a_mig_device_is_listed_there_and_on_the_gpu(self, tmp_path: Path) -> None:
        scenario = split_h100()
        scenario.gpus[0].mig[1].processes = [Process(21, 4096)]
        code = (
            LIST
            + """
h = first(); parts = [nvml.nvmlDeviceGetMigDeviceHandleByIndex(h, i) for i in range(2)]
whole = nvml.nvmlDeviceGetComputeRunningProcesses(h)
tell(parts=[processes(p) for p in parts], whole=[[p.pid, p.gpuInstanceId] for p in whole])
"""
        )
        told = ask(scenario.write(tmp_path / "scenario"), code)
        assert told == {"parts": [[], [[21, 4096]]], "whole": [[21, 8]]}


class TestVisible:
    def test_a_process_that_was_given_the_gpu_is_on_it(self, tmp_path: Path) -> None:
        gpus = [h100(f"{tmp_path} {index}", processes="visible") for index in range(2)]
        path = Scenario(gpus).write(tmp_path / "scenario")
        code = LIST + (
            "first(); tell(on=[[p[0] for p in processes(nvml.nvmlDeviceGetHandleByIndex(i))] for i in "
            "range(2)])"
        )
        trainer = subprocess.Popen(
            [sys.executable, "-c", "input()"],
            stdin=subprocess.PIPE,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": f"GPU-other,{gpus[1].uuid}"},
        )
        try:
            assert eventually(lambda: (told := ask(path, code)["on"]) == [[], [trainer.pid]] and told)
        finally:
            trainer.communicate(b"\n")
        assert ask(path, code)["on"] == [[], []]

    def test_of_several_gpus_a_rank_is_on_the_one_at_its_place(self, tmp_path: Path) -> None:
        gpus = [h100(f"{tmp_path} {index}", processes="visible") for index in range(3)]
        path = Scenario(gpus).write(tmp_path / "scenario")
        code = (
            LIST + "first(); tell(on=[len(processes(nvml.nvmlDeviceGetHandleByIndex(i))) for i in range(3)])"
        )
        given = ",".join(gpu.uuid for gpu in gpus)
        assert ask(path, code, CUDA_VISIBLE_DEVICES=given, LOCAL_RANK="1") == {"on": [0, 1, 0]}
        assert ask(path, code, CUDA_VISIBLE_DEVICES=given, OMPI_COMM_WORLD_LOCAL_RANK="2") == {
            "on": [0, 0, 1]
        }
        assert ask(path, code, CUDA_VISIBLE_DEVICES=given, LOCAL_RANK="7") == {"on": [1, 1, 1]}
        assert ask(path, code, CUDA_VISIBLE_DEVICES=given) == {"on": [1, 1, 1]}

    def test_a_gpu_works_only_while_it_is_held(self, tmp_path: Path) -> None:
        values = {"utilization_pct": WhileHeld(93, 0), "memory_used_bytes": WhileHeld(5000, 1000)}
        gpu = h100(str(tmp_path), processes="visible", values=values)
        path = Scenario([gpu]).write(tmp_path / "scenario")
        code = LIST + (
            "h = first(); tell(use=nvml.nvmlDeviceGetUtilizationRates(h).gpu, memory=[m for _, m in "
            "processes(h)])"
        )
        assert ask(path, code) == {"use": 0, "memory": []}
        assert ask(path, code, CUDA_VISIBLE_DEVICES=gpu.uuid) == {"use": 93, "memory": [5000]}

    def test_a_mig_device_is_held_by_its_own_uuid(self, tmp_path: Path) -> None:
        gpu = in_mig_mode(h100(str(tmp_path)), 2, processes="visible")
        path = Scenario([gpu]).write(tmp_path / "scenario")
        code = LIST + (
            "h = first(); tell(on=[len(processes(nvml.nvmlDeviceGetMigDeviceHandleByIndex(h, i))) for i "
            "in range(2)])"
        )
        assert ask(path, code, CUDA_VISIBLE_DEVICES=gpu.mig[1].uuid) == {"on": [0, 1]}


def test_a_gpu_at_work_draws_power_and_grows_warm(tmp_path: Path) -> None:
    scenario = Scenario(
        [works_while_held(h100("idle")), works_while_held(h100("busy", processes=[Process(7)]))]
    )
    code = """
first(); both = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(2)]
tell(power=[nvml.nvmlDeviceGetPowerUsage(h) / 1000 for h in both],
    use=[nvml.nvmlDeviceGetUtilizationRates(h).gpu for h in both])
"""
    told = ask(scenario.write(tmp_path / "scenario"), code)
    assert told["power"][0] == 70
    assert told["power"][1] > 450
    assert told["use"][0] == 0
    assert told["use"][1] > 80
