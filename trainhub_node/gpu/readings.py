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
    DeviceLost,
    LibraryLost,
    QueryFailed,
    QueryUnsupported,
)

log = logging.getLogger(__name__)
VALID_INTERVALS = 2
"""Rhythms for which an answer stands while later ones fail."""
JITTER_S = 0.2
"""So much too soon is on time: whoever asks once a second is never exact."""

SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, HW_POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80
THROTTLES = {
    "throttled_thermal_pct": SW_THERMAL | HW_THERMAL,
    "throttled_power_pct": SW_POWER_CAP,
    "throttled_hardware_pct": HW_SLOWDOWN | HW_POWER_BRAKE,
}

_INTERVALS_S = {"throttle_reasons": FAST_S, "energy_mj": MEDIUM_S, "process_sm": MEDIUM_S, "processes": MEDIUM_S}
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
        return metric.every_s if metric else _INTERVALS_S.get(self.name, SLOW_S)


@dataclass
class _ReadingState:
    """Where one reading of one device stands. `asked` and `answered`: when, last."""

    every_s: int
    attempted_at: float = -math.inf
    read_at: float = -math.inf
    values: Mapping[str, float] | None = None
    is_supported: bool = True


@dataclass(frozen=True)
class ReadingResults:
    """How the readings that were due went. `error`: the last one of those that failed."""

    succeeded: int
    failed: int
    error: QueryFailed | None = None


class Readings:
    """What one device has told. `said` holds what the log was told already, of every device."""

    def __init__(self, subject: str, table: Iterable[Reading], logged: set[tuple[str, str]]) -> None:
        self._subject = subject
        self._logged = logged
        self._states = [(reading, _ReadingState(reading.every_s)) for reading in table]

    def refresh(self, now: float) -> ReadingResults:
        """Ask what is due. Raises DeviceGone or LibraryGone; any other failure is that one reading's
        alone."""
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
            except QueryUnsupported as error:
                state.is_supported, state.values = False, None
                self._log_once(reading, error)
                succeeded += 1
            except Exception as error:
                # Whatever it is: one failing call must never hide others.
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
        """Once per device and reading: a device that cannot do something must not fill the log."""
        if (self._subject, reading.name) in self._logged:
            return
        self._logged.add((self._subject, reading.name))
        keys = ", ".join(reading.keys)
        if error.code == NO_PERMISSION:
            log.warning("GPU %s: this account may not read %s", self._subject, keys)
        elif isinstance(error, QueryUnsupported):
            log.debug("GPU %s does not tell %s: %s", self._subject, keys, error.message)
        else:
            log.warning("GPU %s did not tell %s: %s (said once)", self._subject, keys, error.message)


class CounterRates:
    """Counters as rates. A first reading, a counter that went back (a reset or a wrap) and a clock that stood
    still give none."""

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
        """The sum over parts; None unless every part has a rate, for a sum of some would look like a fall."""
        rates = [self.rate((key, part), value, now) for part, value in values.items()]
        complete = [rate for rate in rates if rate is not None]
        return sum(complete) if complete and len(complete) == len(rates) else None


def throttle_numbers(mask: int) -> dict[str, float]:
    """NVML's bits of why the clocks are lowered, as numbers over time and the mask itself."""
    return {key: 100.0 if mask & bits else 0.0 for key, bits in THROTTLES.items()} | {
        "throttle_reasons": mask
    }


def present(**values: float | None) -> dict[str, float]:
    return {key: value for key, value in values.items() if value is not None}


def _is_due(attempted_at: float, every_s: float, now: float) -> bool:
    return now < attempted_at or now - attempted_at >= every_s - JITTER_S
