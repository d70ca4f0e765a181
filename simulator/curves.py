"""Values over time. Every curve begins at its scenario's start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Curve(Protocol):
    def text(self) -> str:
        """As the scenario file spells it."""


@dataclass(frozen=True)
class Constant:
    value: float

    def text(self) -> str:
        return f"constant {self.value!r}"


@dataclass(frozen=True)
class Sine:
    mean: float
    amplitude: float
    period_s: float

    def text(self) -> str:
        return f"sine {self.mean!r} {self.amplitude!r} {self.period_s!r}"


@dataclass(frozen=True)
class Ramp:
    """From `first` to `last` within `seconds`, then `last` for good."""

    first: float
    last: float
    seconds: float

    def text(self) -> str:
        return f"ramp {self.first!r} {self.last!r} {self.seconds!r}"


@dataclass(frozen=True)
class Steps:
    """(seconds, value) one after the other; then from the beginning again, or the last value for good."""

    steps: Sequence[tuple[float, float]]
    repeat: bool = False

    def text(self) -> str:
        pairs = " ".join(f"{seconds!r} {value!r}" for seconds, value in self.steps)
        return f"steps {int(self.repeat)} {len(self.steps)} {pairs}"


@dataclass(frozen=True)
class WhileHeld:
    """One value while a process is on the GPU, another while it is idle."""

    held: Curve | float
    idle: Curve | float

    def text(self) -> str:
        return f"held {as_curve(self.held).text()} {as_curve(self.idle).text()}"


@dataclass(frozen=True)
class Noise:
    """Another curve, up to `amplitude` higher or lower; different for each GPU, the same in every process."""

    amplitude: float
    around: Curve | float

    def text(self) -> str:
        return f"noise {self.amplitude!r} {as_curve(self.around).text()}"


def as_curve(value: Curve | float) -> Curve:
    return Constant(value) if isinstance(value, int | float) else value
