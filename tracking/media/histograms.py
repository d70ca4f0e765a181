"""Reads the histograms of runs over steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from jobs.models import Run
from tracking.media.step_files import HISTOGRAM, MediaSeries, StepFile
from tracking.models import Histogram

# Steps of all attempts together that a chart shows: the last ones.
MAX_SHOWN = 500


def series(runs: Sequence[tuple[Run, int]]) -> dict[str, list[MediaSeries]]:
    """Returns the histograms of each run, by its id, of the attempt that is shown."""
    attempts = {run.pk: (run, attempt) for run, attempt in runs}
    steps: dict[tuple[str, str], set[int]] = defaultdict(set)
    rows = Histogram.objects.filter(run__in=attempts).order_by("run", "key", "step")
    for run_id, attempt, key, step in rows.values_list("run_id", "attempt", "key", "step"):
        run, shown = attempts[run_id]
        if shown in (0, run.attempt, attempt):
            steps[run_id, key].add(step)
    found: dict[str, list[MediaSeries]] = defaultdict(list)
    for (run_id, key), at in steps.items():
        files = tuple(StepFile(step, "") for step in sorted(at)[-MAX_SHOWN:])
        found[run_id].append(MediaSeries(key, HISTOGRAM, files))
    return found


def steps_of(run: Run, attempt: int, key: str) -> list[dict[str, object]]:
    """Returns the histograms of a key by step: of one attempt, or of the latest attempt that has the step."""
    rows = Histogram.objects.filter(run=run, key=key).order_by("attempt", "step")
    if attempt not in (0, run.attempt):
        rows = rows.filter(attempt=attempt)
    by_step = {
        row.step: {"step": row.step, "low": row.low, "high": row.high, "counts": row.counts} for row in rows
    }
    return [by_step[step] for step in sorted(by_step)[-MAX_SHOWN:]]
