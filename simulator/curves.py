"""Values over time. Every curve begins at its scenario's start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Curve(Protocol):
    def text(self) -> str:
        """Returns the curve in the syntax of the scenario file."""
        # The text is a prefix notation: name, numbers, then inner curves, so that the C reader needs no
        # brackets.


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
    """Changes evenly from `first` to `last` within `seconds`, and stays at `last`."""

    first: float
    last: float
    seconds: float

    def text(self) -> str:
        return f"ramp {self.first!r} {self.last!r} {self.seconds!r}"


@dataclass(frozen=True)
class Steps:
    """Pairs of (seconds, value) one after the other. Then it starts again, or stays at the last value."""

    steps: Sequence[tuple[float, float]]
    repeat: bool = False

    def text(self) -> str:
        pairs = " ".join(f"{seconds!r} {value!r}" for seconds, value in self.steps)
        return f"steps {int(self.repeat)} {len(self.steps)} {pairs}"


@dataclass(frozen=True)
class WhileHeld:
    """Has one value while a process is on the GPU, and another while it is idle."""

    held: Curve | float
    idle: Curve | float

    def text(self) -> str:
        return f"held {as_curve(self.held).text()} {as_curve(self.idle).text()}"


@dataclass(frozen=True)
class Noise:
    """Another curve plus noise of at most `amplitude`. It differs between GPUs, and is the same in every
    process."""

    amplitude: float
    around: Curve | float

    def text(self) -> str:
        return f"noise {self.amplitude!r} {as_curve(self.around).text()}"


def as_curve(value: Curve | float) -> Curve:
    return Constant(value) if isinstance(value, int | float) else value
