"""What real drivers refuse, lose and get wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simulator import NoCompiler, Scenario, build
from simulator.models import a100, h100
from tests.simulator.worlds import Inhabitant, ask, eight_h100, one_gpu

POWER = (
    "h = first()\ntell(power=attempt(nvml.nvmlDeviceGetPowerUsage, h), "
    "other=attempt(nvml.nvmlDeviceGetTemperature, h, 0))"
)


class TestCalls:
    def test_what_has_no_value_is_not_supported(self, tmp_path: Path) -> None:
        gpu = h100("node gpu 0")
        del gpu.values["power_w"]
        assert ask(Scenario([gpu]).write(tmp_path / "scenario"), POWER) == {"power": "error 3", "other": 32}

    def test_one_call_can_be_unsupported(self, tmp_path: Path) -> None:
        told = ask(one_gpu(unsupported={"nvmlDeviceGetPowerUsage"}).write(tmp_path / "scenario"), POWER)
        assert told == {"power": "error 3", "other": 32}

    def test_one_call_can_fail_with_any_code(self, tmp_path: Path) -> None:
        told = ask(one_gpu(errors={"nvmlDeviceGetPowerUsage": 999}).write(tmp_path / "scenario"), POWER)
        assert told == {"power": "error 999", "other": 32}

    def test_a_call_is_named_with_or_without_its_version(self, tmp_path: Path) -> None:
        code = "h = first(); tell(v1=attempt(lambda: nvml.nvmlDeviceGetMemoryInfo(h).total > 0), \
v2=attempt(lambda: nvml.nvmlDeviceGetMemoryInfo(h, version=nvml.nvmlMemory_v2)))"
        told = ask(one_gpu(unsupported={"nvmlDeviceGetMemoryInfo_v2"}).write(tmp_path / "scenario"), code)
        assert told == {"v1": True, "v2": "error 3"}

    def test_a_call_that_hangs_holds_up_no_other_thread(self, tmp_path: Path) -> None:
        code = """
import threading
h = first()
slow = threading.Thread(target=attempt, args=(nvml.nvmlDeviceGetPowerUsage, h), daemon=True)
slow.start()
read = nvml.nvmlDeviceGetTemperature(h, 0)
tell(read=read, still=slow.is_alive())
import os; os._exit(0)
"""
        told = ask(one_gpu(delays_ms={"nvmlDeviceGetPowerUsage": 60_000}).write(tmp_path / "scenario"), code)
        assert told == {"read": 32, "still": True}


class TestInit:
    @pytest.mark.parametrize(
        ("code", "name"), [(9, "driver not loaded"), (18, "version mismatch"), (4, "no permission")]
    )
    def test_it_fails_as_ordered(self, tmp_path: Path, code: int, name: str) -> None:
        told = ask(
            Scenario(init_error=code).write(tmp_path / "scenario"), "tell(init=attempt(nvml.nvmlInit))"
        )
        assert told == {"init": f"error {code}"}, name

    def test_without_a_scenario_it_fails(self, tmp_path: Path) -> None:
        assert ask(tmp_path / "none", "tell(init=attempt(nvml.nvmlInit))") == {"init": "error 999"}

    def test_a_file_that_is_no_scenario_is_refused_with_its_line(self, tmp_path: Path) -> None:
        path = tmp_path / "scenario"
        path.write_text("nvml-simulator 1\ndriver 1\ngpu GPU-1\nvalue warp_factor constant 9\n")
        code = """
import os
kept, (read, write) = os.dup(2), os.pipe()
os.dup2(write, 2); init = attempt(nvml.nvmlInit); os.dup2(kept, 2)
tell(init=init, said=os.read(read, 1000).decode())
"""
        told = ask(path, code)
        assert told["init"] == "error 999"
        assert f"line 4 of {path} is not understood: value warp_factor constant 9" in told["said"]


LOOK = """
def look(): tell(power=[attempt(nvml.nvmlDeviceGetPowerUsage, h) for h in handles])
nvml.nvmlInit()
handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
look()
while wait(): look()
"""


class TestWhileSomebodyLooks:
    def test_new_values_are_seen(self, tmp_path: Path) -> None:
        scenario = one_gpu(values={"power_w": 100})
        path = scenario.write(tmp_path / "scenario")
        with Inhabitant(path, LOOK) as one:
            assert one.heard() == {"power": [100_000]}
            scenario.gpus[0].values["power_w"] = 200
            scenario.write(path)
            one.go_on()
            assert one.heard() == {"power": [200_000]}

    def test_a_gpu_that_falls_off_the_bus_is_lost_and_the_others_answer(self, tmp_path: Path) -> None:
        scenario = eight_h100()
        path = scenario.write(tmp_path / "scenario")
        more = (
            "again=attempt(nvml.nvmlDeviceGetHandleByIndex, 2), uuid=attempt(nvml.nvmlDeviceGetUUID, "
            "handles[2]), power="
        )
        code = LOOK.replace("power=", more)
        with Inhabitant(path, code) as one:
            one.heard()
            scenario.gpus[2].removed = True
            scenario.write(path)
            one.go_on()
            told = one.heard()
            assert (told["again"], told["uuid"]) == ("error 15", "error 15")
            assert told["power"] == [70_000, 70_000, "error 15", *[70_000] * 5]
            scenario.gpus[2].removed = False
            scenario.write(path)
            one.go_on()
            assert one.heard()["power"] == [70_000] * 8

    def test_a_gpu_that_is_gone_from_the_world_is_lost(self, tmp_path: Path) -> None:
        scenario = Scenario([a100("a"), a100("b")])
        path = scenario.write(tmp_path / "scenario")
        with Inhabitant(path, LOOK) as one:
            one.heard()
            del scenario.gpus[0]
            scenario.write(path)
            one.go_on()
            assert one.heard() == {"power": ["error 15", 52_000]}

    def test_a_driver_that_is_loaded_anew_wants_a_new_init(self, tmp_path: Path) -> None:
        scenario = one_gpu()
        path = scenario.write(tmp_path / "scenario")
        again = (
            LOOK
            + "nvml.nvmlShutdown(); nvml.nvmlInit(); handles = [nvml.nvmlDeviceGetHandleByIndex(0)]; look()"
        )
        with Inhabitant(path, again.replace("while wait(): look()", "wait(); look()")) as one:
            assert one.heard() == {"power": [70_000]}
            scenario.epoch += 1
            scenario.write(path)
            one.go_on()
            assert one.heard() == {"power": ["error 1"]}
            assert one.heard() == {"power": [70_000]}

    def test_every_call_can_fail_until_it_is_over(self, tmp_path: Path) -> None:
        scenario = one_gpu()
        path = scenario.write(tmp_path / "scenario")
        with Inhabitant(path, LOOK) as one:
            one.heard()
            scenario.call_error = 999
            scenario.write(path)
            one.go_on()
            assert one.heard() == {"power": ["error 999"]}
            scenario.call_error = 0
            scenario.write(path)
            one.go_on()
            assert one.heard() == {"power": [70_000]}

    def test_a_broken_file_leaves_the_world_as_it_was(self, tmp_path: Path) -> None:
        path = one_gpu().write(tmp_path / "scenario")
        with Inhabitant(path, LOOK) as one:
            one.heard()
            path.write_text("nonsense\n")
            one.go_on()
            assert one.heard() == {"power": [70_000]}


class TestBuild:
    def test_it_is_built_once_for_the_same_sources(self, tmp_path: Path) -> None:
        first = build.library(tmp_path) / build.NAME
        made = first.stat().st_mtime_ns
        assert (build.library(tmp_path) / build.NAME).stat().st_mtime_ns == made

    def test_a_machine_without_a_compiler_is_told_in_a_sentence(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
        with pytest.raises(NoCompiler, match="need a C compiler, and none of cc, gcc and clang is here"):
            build.library(tmp_path / "library")
