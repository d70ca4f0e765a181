"""Curves that tests log: a value for each step, one second apart, from the moment the run began."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jobs.models import Run
from tracking.curves.lines import start_ms
from tracking.metrics.point_writer import Point, append


def log(run: Run, **curves: Iterable[float]) -> None:
    """`train__loss` stands for train/loss."""
    log_at(run, {name.replace("__", "/"): dict(enumerate(values)) for name, values in curves.items()})


def log_at(run: Run, curves: Mapping[str, Mapping[int, float]]) -> None:
    """Metric -> {step: value}."""
    began = start_ms(run)
    points = [
        Point(key, value, step, began + step * 1000)
        for key, values in curves.items()
        for step, value in values.items()
    ]
    append(run.pk, run.experiment_id, points)
