"""Logs points and reads what is stored."""

from __future__ import annotations

from jobs.models import Run
from tracking.metrics import curve_reader, point_writer
from tracking.metrics.points import Point
from tracking.models import Metric


def log(run: Run, *points: tuple[str, float, int], ms: int = 1000) -> None:
    point_writer.append(
        run.pk, run.experiment_id, [Point(key, value, step, ms + step) for key, value, step in points]
    )


def values(run: Run, key: str) -> list[float]:
    return [float(value) for value in curve_reader.curve_history(run.pk, key).value]


def row(run: Run, key: str) -> Metric:
    return Metric.objects.get(run=run, key=key)
