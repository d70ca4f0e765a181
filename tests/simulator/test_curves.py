"""Values that change with time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulator import Constant, Curve, Noise, Process, Ramp, Sine, Steps, WhileHeld
from simulator.models import a100, h100
from tests.simulator.worlds import ask, one_gpu

PROJECT = Path(__file__).resolve().parents[2]


def told(tmp_path: Path, curve: Curve, age_s: float) -> int:
    """The temperature of an H100 by this curve, `age_s` after the scenario's start."""
    scenario = one_gpu(values={"temperature_c": curve})
    scenario.start -= age_s
    return int(
        ask(
            scenario.write(tmp_path / "scenario"), "h = first(); tell(t=nvml.nvmlDeviceGetTemperature(h, 0))"
        )["t"]
    )


class TestCurves:
    @pytest.mark.parametrize(("curve", "age_s", "expected"), [
        (Constant(41), 0, 41),
        (Sine(50, 0, 60), 17, 50),
        (Sine(50, 30, 4e6), 1e6, 80),
        (Ramp(20, 80, 1000), 5000, 80),
        (Ramp(20, 80, 1e6), 5e5, 50),
        (Steps([(1e5, 30), (1e5, 60)]), 1.5e5, 60),
        (Steps([(1e5, 30), (1e5, 60)]), 9e5, 60),
        (Steps([(1e5, 30), (1e5, 60)], repeat=True), 8.5e5, 30),
        (WhileHeld(90, Noise(0, 35)), 0, 35),
        (Constant(-5), 0, 0),
    ])  # fmt: skip
    def test_are_what_they_say_at_their_age(
        self, tmp_path: Path, curve: Curve, age_s: float, expected: int
    ) -> None:
        assert told(tmp_path, curve, age_s) == expected

    def test_noise_stays_within_its_amplitude_and_moves(self, tmp_path: Path) -> None:
        seen = {told(tmp_path, Noise(20, 50), age) for age in (0, 1e4, 2e4, 3e4, 4e4)}
        assert len(seen) > 1
        assert all(30 <= one <= 70 for one in seen)


def test_every_value_of_the_models_is_one_that_the_library_knows() -> None:
    header = (PROJECT / "simulator" / "world.h").read_text()
    known = set(re.findall(r"X\((\w+_?\w*)\)", header)) - {"name", "X"}
    assert set(h100("a").values) | set(a100("b").values) <= known
    assert "fan_pct" not in h100("a").values, "an SXM board has no fan"


def test_an_explicit_process_holds_the_gpu(tmp_path: Path) -> None:
    scenario = one_gpu(values={"temperature_c": WhileHeld(77, 33)}, processes=[Process(5)])
    assert (
        ask(
            scenario.write(tmp_path / "scenario"), "h = first(); tell(t=nvml.nvmlDeviceGetTemperature(h, 0))"
        )["t"]
        == 77
    )
