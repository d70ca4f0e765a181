"""The schedule of readings, how long each stays valid, and values derived from raw counters and bit masks."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from trainhub_launch.metrics import COUNTERS, FAST_S, GPU_KEYS, MEDIUM_S, SLOW_S
from trainhub_node.gpu.nvml_errors import (
    NO_PERMISSION,
    UNKNOWN,
    DeviceLost,
    LibraryLost,
    QueryFailed,
    QueryUnsupported,
)

log = logging.getLogger(__name__)
# For so many intervals a value stays valid while later readings fail.
VALID_INTERVALS = 2
# A reading this early counts as due: a loop of one second is never exact.
JITTER_S = 0.2

SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, HW_POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80
THROTTLES = {
    "throttled_thermal_pct": SW_THERMAL | HW_THERMAL,
    "throttled_power_pct": SW_POWER_CAP,
    "throttled_hardware_pct": HW_SLOWDOWN | HW_POWER_BRAKE,
}

# For readings that are no metric; other counters are slow.
_INTERVALS_S = {
    "throttle_reasons": FAST_S,
    "energy_mj": MEDIUM_S,
    "process_sm": MEDIUM_S,
    "processes": MEDIUM_S,
}


@dataclass(frozen=True)
class Reading:
    """One query to a device. It returns some of `keys`, numbers or counters; missing keys are unknown.

    `read` takes the present time in seconds of a steady clock and raises QueryFailed."""

    keys: tuple[str, ...]
    read: Callable[[float], Mapping[str, float]]

    @property
    def name(self) -> str:
        return self.keys[0]

    @property
    def every_s(self) -> int:
        metric = GPU_KEYS.get(self.name)
        return metric.every_s if metric else _INTERVALS_S.get(self.name, SLOW_S)


@dataclass
class _ReadingState:
    """The last attempt and the last value of one reading of one device."""

    every_s: int
    attempted_at: float = -math.inf
    read_at: float = -math.inf
    values: Mapping[str, float] | None = None
    is_supported: bool = True


@dataclass(frozen=True)
class ReadingResults:
    """How many of the due readings succeeded and failed, and the last error."""

    succeeded: int
    failed: int
    error: QueryFailed | None = None


class Readings:
    """The schedule and the latest values of one device's readings. `logged` is shared by all devices and
    holds the (device, reading) pairs that the log has mentioned already."""

    def __init__(self, subject: str, table: Iterable[Reading], logged: set[tuple[str, str]]) -> None:
        self._subject = subject
        self._logged = logged
        self._states = [(reading, _ReadingState(reading.every_s)) for reading in table]

    def refresh(self, now: float) -> ReadingResults:
        """Takes the readings that are due.

        Raises DeviceLost or LibraryLost; any other failure concerns that reading alone."""
        succeeded = failed = 0
        last: QueryFailed | None = None
        for reading, state in self._states:
            if not state.is_supported or not _is_due(state.attempted_at, state.every_s, now):
                continue
            state.attempted_at = now
            try:
                state.values = reading.read(now)
            except (DeviceLost, LibraryLost):
                raise
            # An unsupported query counts as a success: the device has answered, so it is not lost.
            except QueryUnsupported as error:
                state.is_supported, state.values = False, None
                self._log_once(reading, error)
                succeeded += 1
            except Exception as error:
                # Any error: one failing call must never hide the other readings.
                last = error if isinstance(error, QueryFailed) else QueryFailed(UNKNOWN, repr(error))
                failed += 1
                self._log_once(reading, last)
            else:
                state.read_at = now
                succeeded += 1
        return ReadingResults(succeeded, failed, last)

    def numbers(self, now: float) -> dict[str, float]:
        return {key: float(value) for key, value in self._values(now) if key in GPU_KEYS}

    def counters(self, now: float) -> dict[str, int]:
        return {key: int(value) for key, value in self._values(now) if key in COUNTERS}

    def _values(self, now: float) -> Iterable[tuple[str, float]]:
        for _, state in self._states:
            if state.values and now - state.read_at <= VALID_INTERVALS * state.every_s + JITTER_S:
                yield from state.values.items()

    def _log_once(self, reading: Reading, error: QueryFailed) -> None:
        """Logs once per device and reading, so that an unsupported query does not fill the log."""
        if (self._subject, reading.name) in self._logged:
            return
        self._logged.add((self._subject, reading.name))
        keys = ", ".join(reading.keys)
        if error.code == NO_PERMISSION:
            log.warning("GPU %s: this account may not read %s", self._subject, keys)
        elif isinstance(error, QueryUnsupported):
            log.debug("GPU %s does not support %s: %s", self._subject, keys, error.message)
        else:
            log.warning("GPU %s: reading %s failed: %s (logged once)", self._subject, keys, error.message)


class CounterRates:
    """Computes rates of counters. There is no rate for the first reading, for a counter that went back (a
    reset or a wrap), or if the clock did not advance."""

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, float]] = {}

    def rate(self, key: Hashable, value: float | None, now: float) -> float | None:
        if value is None:
            return None
        previous = self._last.get(key)
        self._last[key] = (value, now)
        if previous is None or value < previous[0] or now <= previous[1]:
            return None
        return (value - previous[0]) / (now - previous[1])

    def total(self, key: str, values: Mapping[int, float], now: float) -> float | None:
        """Returns the sum of the rates of all parts; None unless every part has one, because a partial sum
        would look like a drop."""
        rates = [self.rate((key, part), value, now) for part, value in values.items()]
        complete = [rate for rate in rates if rate is not None]
        return sum(complete) if complete and len(complete) == len(rates) else None


def throttle_numbers(mask: int) -> dict[str, float]:
    """Returns NVML's mask of throttle reasons as percentages, and the mask itself."""
    # Each reading is 0 or 100, so that the mean over a bucket is the share of time with lowered clocks.
    return {key: 100.0 if mask & bits else 0.0 for key, bits in THROTTLES.items()} | {
        "throttle_reasons": mask
    }


def present(**values: float | None) -> dict[str, float]:
    """Returns the values that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def _is_due(attempted_at: float, every_s: float, now: float) -> bool:
    return now < attempted_at or now - attempted_at >= every_s - JITTER_S
