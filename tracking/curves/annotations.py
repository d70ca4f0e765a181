"""What happened to a run while it logged: marks for charts over time and over steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

import numpy as np

from clusters.alerts import presenters
from jobs.display.text import status_style
from jobs.models import Attempt, Run
from tracking.metrics import curve_reader
from tracking.models import Metric
from trainhub_launch.severity import CRITICAL
from workspaces.models import Workspace

MAX_ALERTS = 100
MAX_EVENTS = 200
STATE, ATTEMPT, ALERT = "state", "attempt", "alert"


@dataclass(frozen=True)
class ChartAnnotation:
    """A moment, or a span if `until` is not None, in Unix seconds. `is_open`: the span has not ended. `label`
    is short, `text` a sentence. `tone`: as in StatusStyle. `step`: the step that the run had logged
    by then, if it is known."""

    kind: str
    at: float
    label: str
    text: str
    tone: str
    until: float | None = None
    is_open: bool = False
    step: int | None = None

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def annotations_of(run: Run, workspace: Workspace) -> list[ChartAnnotation]:
    """Returns the run's changes of state, its restarts and the alerts on its GPUs, in the order of their
    times."""
    annotations = [*_state_changes(run), *_restarts(run), *_alerts(run, workspace)]
    return sorted(annotations, key=lambda annotation: annotation.at)


def _state_changes(run: Run) -> Iterator[ChartAnnotation]:
    for event in run.events.exclude(to_state="")[:MAX_EVENTS]:
        style = status_style(event.to_state)
        text = f"{style.word}: {event.message}" if event.message else style.word
        yield ChartAnnotation(STATE, event.at.timestamp(), style.word, text, style.tone)


def _restarts(run: Run) -> Iterator[ChartAnnotation]:
    attempts = list(Attempt.objects.filter(run=run, number__gt=1).order_by("number")[:MAX_EVENTS])
    steps = _steps_at(run, [attempt.created_at for attempt in attempts]) if attempts else []
    for attempt, step in zip(attempts, steps, strict=True):
        text = f"Attempt {attempt.number} started"
        if step is not None:
            text += f"; the one before had reached step {step:,}"
        yield ChartAnnotation(
            ATTEMPT,
            attempt.created_at.timestamp(),
            f"Attempt {attempt.number}",
            f"{text}.",
            "preparing",
            step=step,
        )


def _steps_at(run: Run, moments: Sequence[datetime]) -> list[int | None]:
    """Returns the last step that the run had logged at each moment, according to its longest curve."""
    longest = Metric.objects.filter(run=run).order_by("-count", "key").first()
    if longest is None:
        return [None] * len(moments)
    points = curve_reader.curve_history(run.pk, longest.key)
    counts = np.searchsorted(points.ms, [moment.timestamp() * 1000 for moment in moments], "right")
    return [int(points.step[count - 1]) if count else None for count in counts]


def _alerts(run: Run, workspace: Workspace) -> Iterator[ChartAnnotation]:
    alerts = presenters.visible(workspace, run.pk).exclude(fired_at=None).order_by("pk")[:MAX_ALERTS]
    for summary in presenters.summarize_all(alerts, workspace.pk):
        fired, cleared = summary.alert.fired_at, summary.alert.cleared_at
        if fired is not None:
            yield ChartAnnotation(
                ALERT,
                fired.timestamp(),
                summary.title,
                summary.sentence,
                "failed" if summary.alert.severity == CRITICAL else "preparing",
                until=None if cleared is None else cleared.timestamp(),
                is_open=cleared is None,
            )
