"""The life of a run as one proportional bar; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jobs.states import FINAL, RunState

WORDS: dict[str, str] = {
    RunState.PROVISIONING: "Scaling",
    RunState.FINALIZING: "Post-processing",
    RunState.CANCEL_REQUESTED: "Canceling",
}
"""The phases as users of such platforms know them; the others are called like their state."""


class Event(Protocol):
    """A line of a run's journal."""

    @property
    def at(self) -> datetime: ...
    @property
    def to_state(self) -> str: ...
    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True)
class Phase:
    """A stretch of time in one state; `is_open` while it still lasts. `attempt` is set where there were
    several."""

    state: str
    word: str
    since: datetime
    seconds: float
    is_open: bool = False
    attempt: int | None = None

    @property
    def share(self) -> int:
        """Of the bar, against the other phases; below 1 a browser would leave a part of the bar empty."""
        return max(1, round(self.seconds * 1000))


def phases(created_at: datetime, events: Iterable[Event], now: datetime) -> tuple[Phase, ...]:
    """The phases in order; a final state closes the last one and is none itself."""
    steps = _steps(created_at, events)
    again = {attempt for _, _, attempt in steps if attempt > 1}
    out = []
    for index, (at, state, attempt) in enumerate(steps):
        if state in FINAL:
            break
        is_open = index + 1 == len(steps)
        until = now if is_open else steps[index + 1][0]
        seconds = max(0.0, (until - at).total_seconds())
        out.append(
            Phase(
                state, WORDS.get(state, state), at, seconds, is_open, attempt if again and attempt else None
            )
        )
    return tuple(out)


def stretch(started_at: datetime, finished_at: datetime | None, now: datetime) -> tuple[Phase, ...]:
    """Of a run from elsewhere, by its client's clock: it ran from then to then, or still does."""
    state, seconds = RunState.RUNNING.value, ((finished_at or now) - started_at).total_seconds()
    return (
        Phase(state, WORDS.get(state, state), started_at, max(0.0, seconds), is_open=finished_at is None),
    )


def _steps(created_at: datetime, events: Iterable[Event]) -> list[tuple[datetime, str, int]]:
    """When which state was entered. The journal may begin after Queued, and notes are no steps."""
    steps = [(event.at, event.to_state, event.attempt) for event in events if event.to_state]
    if not steps or steps[0][1] != RunState.QUEUED:
        steps.insert(0, (created_at, RunState.QUEUED.value, 0))
    return steps
