"""The phases of a run as one bar whose parts are proportional to their durations. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jobs.display.text import status_style
from jobs.states import FINAL, RunState


class TimelineEvent(Protocol):
    """The attributes of a run's event that the timeline needs."""

    @property
    def at(self) -> datetime: ...
    @property
    def to_state(self) -> str: ...
    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True)
class StateSpan:
    """A period in one state; `is_open` while it lasts. `attempt` is None unless the run had several
    attempts."""

    state: str
    word: str
    since: datetime
    seconds: float
    is_open: bool = False
    attempt: int | None = None

    @property
    def share(self) -> int:
        """Returns the width relative to the other phases: milliseconds, at least 1. If all values add up to
        less than 1, CSS leaves a part of the bar empty."""
        return max(1, round(self.seconds * 1000))


def phases(created_at: datetime, events: Iterable[TimelineEvent], now: datetime) -> tuple[StateSpan, ...]:
    """Returns the phases of a job in order. A final state ends the last phase and is not a phase itself."""
    steps = _steps(created_at, events)
    # Without a retry every phase belongs to attempt 1, and the page shows no numbers.
    again = {attempt for _, _, attempt in steps if attempt > 1}
    out = []
    for index, (at, state, attempt) in enumerate(steps):
        if state in FINAL:
            break
        is_open = index + 1 == len(steps)
        until = now if is_open else steps[index + 1][0]
        # Event times may come from nodes, and the hub's clock may have been set back between two events.
        seconds = max(0.0, (until - at).total_seconds())
        out.append(
            StateSpan(
                state, status_style(state).word, at, seconds, is_open, attempt if again and attempt else None
            )
        )
    return tuple(out)


def stretch(started_at: datetime, finished_at: datetime | None, now: datetime) -> tuple[StateSpan, ...]:
    """Returns the only phase of an external run, from its start to its end or to `now`, as its client
    reported them."""
    state, seconds = RunState.RUNNING.value, ((finished_at or now) - started_at).total_seconds()
    return (
        StateSpan(
            state, status_style(state).word, started_at, max(0.0, seconds), is_open=finished_at is None
        ),
    )


def _steps(created_at: datetime, events: Iterable[TimelineEvent]) -> list[tuple[datetime, str, int]]:
    """Returns (time, state, attempt) for each change of state. Queued is added if the first event is a later
    one; events without a new state are ignored."""
    steps = [(event.at, event.to_state, event.attempt) for event in events if event.to_state]
    if not steps or steps[0][1] != RunState.QUEUED:
        steps.insert(0, (created_at, RunState.QUEUED.value, 0))
    return steps
