"""How the GPUs of an agent begin, what they tell by themselves, and how little they say otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulator import Event, Process, Scenario, xid
from simulator.models import h100
from tests.node.gpu.gpu_world import LONG, World, two_gpus
from tests.simulator.worlds import eight_h100, one_gpu
from trainhub_node.gpu.nvml_errors import (
    DRIVER_NOT_LOADED,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    VERSION_MISMATCH,
)

DOUBLE_BIT_ECC = 2
"""nvmlEventTypeDoubleBitEccError."""


class TestStart:
    def test_without_library_and_hardware_is_a_machine_without_gpus(self, tmp_path: Path) -> None:
        with World(None, tmp_path) as world:
            snapshot = world.read()
            assert (snapshot.gpus, snapshot.trouble, snapshot.events) == ({}, "", ())
            assert world.lines("WARNING") == []

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            (DRIVER_NOT_LOADED, "modprobe nvidia"),
            (VERSION_MISMATCH, "reboot, or reload its modules"),
            (NO_PERMISSION, "/dev/nvidia*"),
            (UNKNOWN, "dmesg"),
        ],
    )
    def test_with_a_driver_that_fails_says_the_remedy_and_goes_on_trying(
        self, tmp_path: Path, code: int, words: str
    ) -> None:
        scenario = one_gpu()
        scenario.init_error = code
        with World(scenario, tmp_path) as world:
            snapshot = world.read()
            assert (snapshot.gpus, words in snapshot.trouble, snapshot.events) == ({}, True, ())
            world.read(LONG)
            assert len(world.lines("WARNING", "No GPU can be read")) == 1

            scenario.init_error = 0
            world.change()
            snapshot = world.read(LONG)
            assert (snapshot.only.state, snapshot.trouble, snapshot.events) == ("ok", "", ())

    def test_of_a_machine_whose_gpus_are_all_gone_already_says_so(self, tmp_path: Path) -> None:
        with World(one_gpu(removed=True), tmp_path) as world:
            snapshot = world.read()

        assert (snapshot.gpus, snapshot.trouble) == (
            {},
            "A GPU has fallen off the bus and no GPU can be read: reboot the machine.",
        )

    def test_of_an_account_that_may_open_none_of_them_says_so(self, tmp_path: Path) -> None:
        with World(one_gpu(errors={"nvmlDeviceGetHandleByIndex": NO_PERMISSION}), tmp_path) as world:
            assert "let it read and write /dev/nvidia*" in world.read().trouble

    def test_of_an_account_that_may_open_some_of_them_offers_those(self, tmp_path: Path) -> None:
        barred = h100("barred", errors={"nvmlDeviceGetHandleByIndex": NO_PERMISSION})
        with World(Scenario([barred, h100("ours")]), tmp_path) as world:
            snapshot = world.read()

        assert (snapshot.only.index, snapshot.only.state, snapshot.trouble) == (1, "ok", "")

    def test_without_the_python_package_fails_loudly_instead_of_showing_no_gpus(self) -> None:
        code = "import sys; sys.modules['pynvml'] = None; import trainhub_node.agent"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

        assert done.returncode != 0
        assert "pynvml" in done.stderr


class TestXids:
    def test_reach_the_book_and_the_counters(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        gpu = scenario.gpus[1]
        with World(scenario, tmp_path) as world:
            assert "xid_last" not in world.read().gpus[gpu.uuid].counters
            gpu.events += [xid(31), xid(79)]
            world.change()
            snapshot = world.until(lambda snapshot: len(snapshot.events) == 2)
            assert [(event.serial, event.kind, event.gpu, event.code) for event in snapshot.events] == [
                (1, "xid", gpu.uuid, 31),
                (2, "xid", gpu.uuid, 79),
            ]
            counters = snapshot.gpus[gpu.uuid].counters
            assert (counters["xid_last"], counters["xid_count"]) == (79, 2)
            assert world.read(confirm=1).events == snapshot.events[1:]

    def test_of_a_gpu_that_then_falls_off_the_bus_stay_known(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        gpu = scenario.gpus[0]
        with World(scenario, tmp_path) as world:
            world.read()
            gpu.events.append(xid(79))
            world.change()
            world.until(lambda snapshot: snapshot.events)
            gpu.removed = True
            world.change()
            snapshot = world.read(5)

        assert snapshot.gpus[gpu.uuid].counters == {"xid_last": 79, "xid_count": 1}
        assert snapshot.event_kinds == [("xid", gpu.uuid), ("lost", gpu.uuid)]

    def test_of_the_others_are_heard_while_one_is_lost(self, tmp_path: Path) -> None:
        scenario = two_gpus()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.gpus[0].removed = True
            world.change()
            world.read(5)
            scenario.gpus[1].events.append(xid(43))
            world.change()
            assert world.until(lambda snapshot: ("xid", scenario.gpus[1].uuid) in snapshot.event_kinds)

    def test_are_left_out_where_the_device_tells_none(self, tmp_path: Path) -> None:
        silent = h100("silent", errors={"nvmlDeviceGetSupportedEventTypes": NOT_SUPPORTED})
        scenario = Scenario([silent, h100("other")])
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.gpus[0].events.append(xid(31))
            scenario.gpus[1].events.append(xid(43))
            world.change()
            assert world.until(lambda snapshot: snapshot.events).event_kinds == [
                ("xid", scenario.gpus[1].uuid)
            ]

    def test_are_not_what_an_uncorrected_memory_error_is(self, tmp_path: Path) -> None:
        scenario = one_gpu()
        with World(scenario, tmp_path) as world:
            world.read()
            scenario.gpus[0].events.append(Event(time.time(), 0, type=DOUBLE_BIT_ECC))
            world.change()
            snapshot = world.until(lambda snapshot: snapshot.events)

        assert snapshot.event_kinds == [("ecc", scenario.gpus[0].uuid)]
        assert "xid_count" not in snapshot.only.counters


class TestQuiet:
    def test_nothing_is_logged_at_every_sample(self, tmp_path: Path) -> None:
        scenario = one_gpu(
            unsupported={"nvmlDeviceGetEncoderUtilization"},
            processes=[Process(os.getpid())],
            errors={"nvmlDeviceGetPowerUsage": UNKNOWN, "nvmlDeviceGetDecoderUtilization": NO_PERMISSION},
        )
        with World(scenario, tmp_path) as world:
            world.read()
            before = len(world.lines())
            for _ in range(200):
                world.read()

            assert len(world.lines()) == before
            assert (
                len(world.lines("power_w"))
                == len(world.lines("encoder_pct"))
                == len(world.lines("decoder_pct"))
                == 1
            )

    def test_the_process_ends_at_once_when_told_to(self, tmp_path: Path) -> None:
        with World(eight_h100(), tmp_path) as world:
            world.read()
            assert world.end() == 0
