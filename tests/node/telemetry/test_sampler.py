"""The beat at which a node measures itself, beside devices that answer, fail and hang."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.hub import eventually
from tests.node.builders import settings
from tests.node.hub import FakeHub
from trainhub_launch.machine import GpuFact
from trainhub_launch.telemetry import HOST, GpuProcess
from trainhub_node.telemetry import sampler
from trainhub_node.telemetry.buckets import Recorder
from trainhub_node.telemetry.sampler import Sampler, next_due


class Device:
    """One GPU; `answers` is cleared to let it hang, `fails` set to let it raise."""

    driver, cuda, trouble = "570.86", "12.8", ""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.fails = False
        self.reads = 0

    def read(self, now: float) -> tuple[GpuFact, ...]:
        self.reads += 1
        self.answers.wait()
        if self.fails:
            raise RuntimeError("a wire is loose")
        process = GpuProcess(1, "python")
        return (
            GpuFact("GPU-a", 0, "NVIDIA H100", 80, {"power_w": 70.0}, {"xid_count": 1}, processes=(process,)),
        )


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def make(
    hub: FakeHub, tmp_path: Path, device: Device, recorder: Recorder
) -> Iterator[Callable[..., Sampler]]:
    with ExitStack() as stack:

        def value(on_sample: Callable[[], None] = lambda: None) -> Sampler:
            one = Sampler(settings(hub, tmp_path), device, recorder, on_sample=on_sample)
            stack.callback(device.answers.set)
            stack.callback(one.close)
            return one

        yield value


def steps(recorder: Recorder, subject: str) -> int:
    return sum(block.steps for block in recorder.samples(0)[0] if subject in block.subjects)


class TestFirstWord:
    def test_holds_the_machine_and_its_gpus(self, make: Callable[..., Sampler]) -> None:
        beat = make().latest()

        assert beat.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert (beat.address, beat.interface) == ("127.0.0.1", "lo")
        assert [(gpu.uuid, gpu.numbers) for gpu in beat.gpus] == [("GPU-a", {"power_w": 70.0})]
        assert (beat.driver, beat.cuda, beat.nvml) == ("570.86", "12.8", "")
        assert beat.numbers["memory_used_bytes"] == beat.memory_used_bytes < beat.memory_bytes

    def test_waits_for_slow_devices_only_so_long(
        self, make: Callable[..., Sampler], device: Device, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sampler, "FIRST_TIMEOUT_S", 0.05)
        device.answers.clear()

        assert make().latest().gpus == ()


class TestBeat:
    def test_brings_one_sample_a_second(self, make: Callable[..., Sampler], recorder: Recorder) -> None:
        ticks: list[int] = []
        make(on_sample=lambda: ticks.append(1)).start()

        eventually(lambda: steps(recorder, HOST) >= 3)

        host = next(block for block in recorder.samples(0)[0] if block.is_host)
        assert host.steps >= 3
        assert "cpu_pct" in host.metrics
        assert len(ticks) >= 3

    def test_keeps_its_distance_and_skips_what_it_missed(self) -> None:
        assert next_due(10.25, 10.26) == 11.25
        assert next_due(10.25, 11.24) == 11.25
        assert next_due(10.25, 15.0) == 15.25

    def test_keeps_interpreters_up_to_date_beside(self, make: Callable[..., Sampler]) -> None:
        one = make()
        one.start()

        eventually(lambda: one.latest().interpreters)


class TestAHangingDriver:
    @pytest.fixture(autouse=True)
    def _impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sampler, "HANG_S", 1.5)
        monkeypatch.setattr(sampler, "MAX_AGE_S", 0.5)

    def test_stops_neither_the_machines_numbers_nor_the_heartbeat(
        self,
        make: Callable[..., Sampler],
        device: Device,
        recorder: Recorder,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.INFO)
        one = make()
        one.start()
        eventually(lambda: steps(recorder, "GPU-a") >= 1)
        device.answers.clear()

        eventually(lambda: one.latest().nvml)

        (gpu,) = one.latest().gpus
        assert one.latest().nvml.startswith("The GPU driver has not answered since 20")
        assert (gpu.uuid, gpu.numbers, gpu.counters, gpu.processes) == ("GPU-a", {}, {}, ())
        assert steps(recorder, HOST) > steps(recorder, "GPU-a")

        reads = device.reads
        values = one.latest().nvml
        snapshot = steps(recorder, HOST)
        eventually(lambda: steps(recorder, HOST) > snapshot)
        assert (one.latest().nvml, device.reads) == (values, reads)

        device.answers.set()
        eventually(lambda: not one.latest().nvml)
        assert one.latest().gpus[0].numbers == {"power_w": 70.0}
        assert caplog.text.count("Reading the GPUs takes more than") == 1
        assert caplog.text.count("The GPUs answer again") == 1

    def test_that_fails_leaves_the_numbers_out_and_says_so_once(
        self,
        make: Callable[..., Sampler],
        device: Device,
        recorder: Recorder,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        one = make()
        one.start()
        device.fails = True
        reads = device.reads

        eventually(lambda: device.reads >= reads + 3)

        assert caplog.text.count("Reading the GPUs failed") == 1
        eventually(lambda: steps(recorder, HOST) > steps(recorder, "GPU-a"))
