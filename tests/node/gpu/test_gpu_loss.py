"""GPUs that fall off the bus, a driver that goes and comes, machines that have none: told rightly, and
recovered from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from simulator import library, xid
from simulator.build import NAME
from simulator.models import h100
from tests.node.gpu.gpu_world import LONG, World, two_gpus
from tests.simulator.worlds import eight_h100, one_gpu, split_h100
from trainhub_node.gpu.nvml_errors import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    RESET_REQUIRED,
    UNKNOWN,
    VERSION_MISMATCH,
)


class TestLostDevice:
    def test_stays_in_the_picture_without_numbers_and_the_others_go_on(self, tmp_path: Path) -> None:
        scenario = eight_h100()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.gpus[2].removed = True
            world.change()
            snapshot = world.read()

        lost = snapshot.gpus[scenario.gpus[2].uuid]
        assert (lost.state, lost.numbers, lost.counters, lost.processes) == ("lost", {}, {}, ())
        assert (
            lost.error == "It no longer responds (GPU is lost): check dmesg; a reboot usually brings it back."
        )
        assert (lost.index, lost.name, lost.memory_bytes) == (2, "NVIDIA H100 80GB HBM3", 81559 * 2**20)
        others = [gpu for uuid, gpu in snapshot.gpus.items() if uuid != lost.uuid]
        assert [(gpu.state, gpu.numbers["power_w"]) for gpu in others] == [("ok", 70)] * 7
        assert snapshot.event_kinds == [("lost", lost.uuid)]
        assert snapshot.trouble == ""

    def test_is_told_once_and_once_when_it_is_back(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        gpu = scenario.gpus[1]
        with World(scenario, tmp_path) as world:
            world.read()
            gpu.removed = True
            world.change()
            for _ in range(5):
                world.read(5)
            gpu.removed = False
            world.change()
            snapshot = world.read(5)

        assert snapshot.event_kinds == [("lost", gpu.uuid), ("back", gpu.uuid)]
        assert (snapshot.gpus[gpu.uuid].state, snapshot.gpus[gpu.uuid].error) == ("ok", "")
        assert snapshot.gpus[gpu.uuid].numbers["power_w"] == 70

    def test_that_vanishes_from_the_list_is_lost_too(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            removed_item = scenario.gpus.pop(0)
            world.change()
            snapshot = world.read(5)
            assert snapshot.gpus[removed_item.uuid].state == "lost"
            assert snapshot.gpus[scenario.gpus[0].uuid].numbers["power_w"] == 70
            assert snapshot.gpus[scenario.gpus[0].uuid].index == 0

            scenario.gpus.insert(0, removed_item)
            world.change()
            assert world.read(5).event_kinds == [("lost", removed_item.uuid), ("back", removed_item.uuid)]

    def test_that_needs_a_reset_says_so(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.gpus[0].errors = {"nvmlDeviceGetUtilizationRates": RESET_REQUIRED}
            world.change()
            lost = world.read().gpus[scenario.gpus[0].uuid]

        assert (lost.state, "nvidia-smi --gpu-reset" in lost.error) == ("lost", True)

    def test_that_answers_nothing_while_others_do_is_lost(self, tmp_path: Path) -> None:
        calls = (
            "UtilizationRates",
            "MemoryInfo",
            "PowerUsage",
            "EnforcedPowerLimit",
            "Temperature",
            "ClockInfo",
        )
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.gpus[0].errors = {
                f"nvmlDeviceGet{call}": UNKNOWN for call in (*calls, "CurrentClocksEventReasons")
            }
            world.change()
            snapshot = world.read()

        assert [gpu.state for gpu in snapshot.gpus.values()] == ["lost", "ok"]

    def test_that_is_alone_comes_back_by_opening_the_library_anew(self, tmp_path: Path) -> None:
        scenario = one_gpu()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.gpus[0].removed = True
            world.change()
            assert [world.read(LONG).only.state for _ in range(3)] == ["lost"] * 3
            scenario.gpus[0].removed = False
            world.change()
            snapshot = world.read(LONG)

        assert snapshot.only.numbers["power_w"] == 70
        assert snapshot.event_kinds == [("lost", snapshot.only.uuid), ("back", snapshot.only.uuid)]

    def test_takes_its_mig_devices_along_and_brings_them_back(self, tmp_path: Path) -> None:
        scenario = split_h100(parts=2)
        split = scenario.gpus[0]
        with World(scenario, tmp_path) as world:
            world.read()
            split.removed = True
            world.change()
            snapshot = world.read(5)
            assert [gpu.state for gpu in snapshot.gpus.values()] == ["lost", "lost", "lost", "ok"]
            split.removed = False
            world.change()
            snapshot = world.read(5)

        assert [gpu.state for gpu in snapshot.gpus.values()] == ["ok"] * 4
        assert snapshot.event_kinds == [("lost", split.uuid), ("back", split.uuid)]

    def test_that_comes_new_is_taken_up(self, tmp_path: Path) -> None:
        scenario = one_gpu()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.gpus.append(h100("second"))
            world.change()
            snapshot = world.read(5)

        assert [gpu.state for gpu in snapshot.gpus.values()] == ["ok", "ok"]
        assert snapshot.events == ()


class TestLostLibrary:
    @pytest.mark.parametrize("code", [UNKNOWN, DRIVER_NOT_LOADED, GPU_IS_LOST])
    def test_is_opened_again_and_all_is_as_before(self, tmp_path: Path, code: int) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.call_error = code
            world.change()
            snapshot = world.read()
            assert [(gpu.state, gpu.numbers) for gpu in snapshot.gpus.values()] == [("lost", {})] * 2
            scenario.call_error = 0
            world.change()
            snapshot = world.read(LONG)

        assert [gpu.numbers["power_w"] for gpu in snapshot.gpus.values()] == [70, 70]
        assert snapshot.trouble == ""
        kinds = [kind for kind, _ in snapshot.event_kinds]
        assert kinds == (
            ["lost", "lost", "back", "back"] if code == GPU_IS_LOST else ["nvml_lost", "nvml_back"]
        )

    def test_by_a_driver_that_was_loaded_anew_is_hardly_missed(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.epoch += 1
            world.change()
            world.read()
            snapshot = world.read(LONG)

        assert [gpu.state for gpu in snapshot.gpus.values()] == ["ok", "ok"]
        assert snapshot.event_kinds == [("nvml_lost", ""), ("nvml_back", "")]

    def test_is_told_once_however_long_it_lasts(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.call_error = UNKNOWN
            world.change()
            for _ in range(6):
                snapshot = world.read(LONG)

        assert snapshot.event_kinds == [("nvml_lost", "")]
        assert snapshot.trouble.startswith("The NVIDIA driver does not answer (Unknown Error)")
        assert {gpu.error for gpu in snapshot.gpus.values()} == {snapshot.trouble}

    def test_hears_xids_again_afterwards(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.epoch += 1
            world.change()
            world.read()
            world.read(LONG)
            scenario.gpus[1].events.append(xid(31))
            world.change()
            snapshot = world.until(lambda snapshot: ("xid", scenario.gpus[1].uuid) in snapshot.event_kinds)

        assert snapshot.gpus[scenario.gpus[1].uuid].counters["xid_last"] == 31

    def test_by_an_update_of_the_driver_says_what_to_do_and_needs_no_new_agent(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.call_error = scenario.init_error = VERSION_MISMATCH
            world.change()
            world.read()
            assert (
                world.read(LONG).trouble
                == "The NVIDIA driver was updated while it ran: reboot, or reload its modules."
            )
            scenario.call_error = scenario.init_error = 0
            scenario.driver = "580.1"
            world.change()
            snapshot = world.read(LONG)

        assert (snapshot.driver, snapshot.trouble) == ("580.1", "")
        assert [gpu.state for gpu in snapshot.gpus.values()] == ["ok", "ok"]

    def test_by_an_update_of_the_driver_is_loaded_from_the_new_file(self, tmp_path: Path) -> None:
        shutil.copy(library() / NAME, tmp_path / NAME)
        scenario = two_gpus()
        with World(scenario, tmp_path, LD_LIBRARY_PATH=str(tmp_path)) as world:
            world.read()
            shutil.copy(library() / NAME, tmp_path / "update")
            (tmp_path / "update").replace(tmp_path / NAME)
            scenario.call_error = scenario.init_error = VERSION_MISMATCH
            world.change()
            world.read()
            world.read(LONG)
            scenario.call_error = scenario.init_error = 0
            world.change()
            assert [gpu.state for gpu in world.read(LONG).gpus.values()] == ["ok", "ok"]
            mapped = [
                line
                for line in Path(f"/proc/{world.process.pid}/maps").read_text().splitlines()
                if NAME in line
            ]

        assert mapped
        assert not [line for line in mapped if line.endswith("(deleted)")]

    def test_forgets_a_gpu_that_was_lost_meanwhile_as_such(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.epoch += 1
            removed_item = scenario.gpus.pop()
            world.change()
            world.read()
            snapshot = world.read(LONG)

        assert snapshot.gpus[removed_item.uuid].state == "lost"
        assert ("lost", removed_item.uuid) in snapshot.event_kinds
        assert ("nvml_back", "") in snapshot.event_kinds
