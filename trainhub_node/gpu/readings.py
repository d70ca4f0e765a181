"""When a device is asked for what, how long an answer stands, and what follows from raw counters and bits."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from trainhub_launch.metrics import COUNTERS, FAST_S, GPU_KEYS, MEDIUM_S, SLOW_S
from trainhub_node.gpu.nvml_errors import (
    NO_PERMISSION,
    UNKNOWN,
    DeviceGone,
    LibraryGone,
    Unanswered,
    Unsupported,
)

log = logging.getLogger(__name__)
STANDS = 2
"""Rhythms for which an answer stands while later ones fail."""
EARLY_S = 0.2
"""So much too soon is on time: whoever asks once a second is never exact."""

SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, HW_POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80
THROTTLES = {
    "throttled_thermal_pct": SW_THERMAL | HW_THERMAL,
    "throttled_power_pct": SW_POWER_CAP,
    "throttled_hardware_pct": HW_SLOWDOWN | HW_POWER_BRAKE,
}

_RHYTHMS = {"throttle_reasons": FAST_S, "energy_mj": MEDIUM_S, "process_sm": MEDIUM_S, "processes": MEDIUM_S}
"""Of what is no number over time; other counters are slow."""


@dataclass(frozen=True)
class Reading:
    """One question to a device: it answers with some of `keys`, numbers or counters; what it leaves out is
    not known.

    `read` takes the moment and raises Unanswered.
    """

    keys: tuple[str, ...]
    read: Callable[[float], Mapping[str, float]]

    @property
    def name(self) -> str:
        return self.keys[0]

    @property
    def every_s(self) -> int:
        metric = GPU_KEYS.get(self.name)
        return metric.every_s if metric else _RHYTHMS.get(self.name, SLOW_S)


@dataclass
class _Standing:
    """Where one reading of one device stands. `asked` and `answered`: when, last."""

    every_s: int
    asked: float = -math.inf
    answered: float = -math.inf
    values: Mapping[str, float] | None = None
    supported: bool = True


@dataclass(frozen=True)
class Round:
    """How the readings that were due went. `error`: the last one of those that failed."""

    answered: int
    failed: int
    error: Unanswered | None = None


class Readings:
    """What one device has told. `said` holds what the log was told already, of every device."""

    def __init__(self, subject: str, table: Iterable[Reading], said: set[tuple[str, str]]) -> None:
        self._subject = subject
        self._said = said
        self._standing = [(reading, _Standing(reading.every_s)) for reading in table]

    def take(self, now: float) -> Round:
        """Ask what is due. Raises DeviceGone or LibraryGone; any other failure is that one reading's
        alone."""
        answered = failed = 0
        last: Unanswered | None = None
        for reading, standing in self._standing:
            if not standing.supported or not _due(standing.asked, standing.every_s, now):
                continue
            standing.asked = now
            try:
                standing.values = reading.read(now)
            except (DeviceGone, LibraryGone):
                raise
            except Unsupported as error:
                standing.supported, standing.values = False, None
                self._tell(reading, error)
                answered += 1
            except Exception as error:
                # Whatever it is: one failing call must never hide others.
                last = error if isinstance(error, Unanswered) else Unanswered(UNKNOWN, repr(error))
                failed += 1
                self._tell(reading, last)
            else:
                standing.answered = now
                answered += 1
        return Round(answered, failed, last)

    def numbers(self, now: float) -> dict[str, float]:
        return {key: float(value) for key, value in self._values(now) if key in GPU_KEYS}

    def counters(self, now: float) -> dict[str, int]:
        return {key: int(value) for key, value in self._values(now) if key in COUNTERS}

    def _values(self, now: float) -> Iterable[tuple[str, float]]:
        for _, standing in self._standing:
            if standing.values and now - standing.answered <= STANDS * standing.every_s + EARLY_S:
                yield from standing.values.items()

    def _tell(self, reading: Reading, error: Unanswered) -> None:
        """Once per device and reading: a device that cannot do something must not fill the log."""
        if (self._subject, reading.name) in self._said:
            return
        self._said.add((self._subject, reading.name))
        what = ", ".join(reading.keys)
        if error.code == NO_PERMISSION:
            log.warning("GPU %s: this account may not read %s", self._subject, what)
        elif isinstance(error, Unsupported):
            log.debug("GPU %s does not tell %s: %s", self._subject, what, error.said)
        else:
            log.warning("GPU %s did not tell %s: %s (said once)", self._subject, what, error.said)


class Rates:
    """Counters as rates. A first reading, a counter that went back (a reset or a wrap) and a clock that stood
    still give none."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, float]] = {}

    def rate(self, key: Hashable, value: float | None, now: float) -> float | None:
        if value is None:
            return None
        before = self._last.get(key)
        self._last[key] = (value, now)
        if before is None or value < before[0] or now <= before[1]:
            return None
        return (value - before[0]) / (now - before[1])

    def total(self, key: str, values: Mapping[int, float], now: float) -> float | None:
        """The sum over parts; None unless every part has a rate, for a sum of some would look like a fall."""
        rates = [self.rate((key, part), value, now) for part, value in values.items()]
        known = [rate for rate in rates if rate is not None]
        return sum(known) if known and len(known) == len(rates) else None


def throttled(mask: int) -> dict[str, float]:
    """NVML's bits of why the clocks are lowered, as numbers over time and the mask itself."""
    return {key: 100.0 if mask & bits else 0.0 for key, bits in THROTTLES.items()} | {
        "throttle_reasons": mask
    }


def known(**values: float | None) -> dict[str, float]:
    return {key: value for key, value in values.items() if value is not None}


def _due(asked: float, every_s: float, now: float) -> bool:
    return now < asked or now - asked >= every_s - EARLY_S
