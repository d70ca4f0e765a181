"""Stores points: the slice of each request, and each curve's last, min and max value, in one transaction."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection, transaction

from tracking.metrics.points import Points, concatenate, slice_bytes
from tracking.models import Metric, MetricSlice

# SQLite allows 32,766 parameters in one query, nine for each row.
BATCH_ROWS = 400
_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s, %s)"
# One array for each column: PostgreSQL handles a thousand rows much faster this way than as nine thousand
# parameters.
_ARRAYS = (
    "SELECT * FROM unnest(%s::varchar[], %s::bigint[], %s::varchar[], %s::bigint[], %s::float8[], "
    "%s::bigint[], %s::bigint[], "
    "%s::float8[], %s::float8[])"
)
_TABLE = Metric._meta.db_table
# The order of MLflow's server: step, time and value, with NaN as 0.
_NEWER = (
    f"(excluded.last_step, excluded.last_ms, COALESCE(excluded.last_value, 0)) >= "
    f"({_TABLE}.last_step, {_TABLE}.last_ms, COALESCE({_TABLE}.last_value, 0))"
)
_UPSERT = f"""
INSERT INTO {_TABLE} (run_id, experiment_id, key, count, last_value, last_step, last_ms, min_value, max_value)
{{rows}}
ON CONFLICT (run_id, key) DO UPDATE SET
  count = {_TABLE}.count + excluded.count,
  last_value = CASE WHEN {_NEWER} THEN excluded.last_value ELSE {_TABLE}.last_value END,
  last_step = CASE WHEN {_NEWER} THEN excluded.last_step ELSE {_TABLE}.last_step END,
  last_ms = CASE WHEN {_NEWER} THEN excluded.last_ms ELSE {_TABLE}.last_ms END,
  min_value = CASE WHEN {_TABLE}.min_value IS NULL OR excluded.min_value < {_TABLE}.min_value
    THEN excluded.min_value ELSE {_TABLE}.min_value END,
  max_value = CASE WHEN {_TABLE}.max_value IS NULL OR excluded.max_value > {_TABLE}.max_value
    THEN excluded.max_value ELSE {_TABLE}.max_value END
"""
# The table's name is a constant, so nothing can be injected.
_COLUMNS = f"{MetricSlice._meta.db_table} (run_id, points, data, created_at)"
_SLICE = f"INSERT INTO {_COLUMNS} VALUES (%s, %s, %s, %s)"  # noqa: S608


@dataclass(frozen=True)
class PointBatch:
    """Points of one run from one request; `at` is the time of its arrival."""

    run_id: str
    experiment_id: int
    curves: Mapping[str, Points]
    at: object


def store_batches(batches: Sequence[PointBatch]) -> None:
    """Stores all batches in one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # As durable as SQLite's WAL with synchronous=NORMAL: if the machine crashes, transactions of the
            # last half second may be lost, but only as a whole.
            cursor.execute("SET LOCAL synchronous_commit TO OFF")
        cursor.executemany(_SLICE, [_slice_row(batch) for batch in batches])
        rows = list(_metric_rows(batches))
        if connection.vendor == "postgresql" and rows:
            cursor.execute(_UPSERT.format(rows=_ARRAYS), [list(column) for column in zip(*rows, strict=True)])
            return
        for first in range(0, len(rows), BATCH_ROWS):
            # SQLite's limit on parameters.
            chunk = rows[first : first + BATCH_ROWS]
            values = f"VALUES {', '.join([_ROW] * len(chunk))}"
            cursor.execute(_UPSERT.format(rows=values), [value for row in chunk for value in row])


def _slice_row(batch: PointBatch) -> tuple[Any, ...]:
    return batch.run_id, sum(map(len, batch.curves.values())), slice_bytes(batch.curves), batch.at


def _metric_rows(batches: Iterable[PointBatch]) -> Iterable[tuple[Any, ...]]:
    """Yields one row for each curve, sorted: the same lock order in all writers prevents deadlocks."""
    by_curve: defaultdict[tuple[str, str, int], list[Points]] = defaultdict(list)
    for batch in batches:
        for key, points in batch.curves.items():
            by_curve[batch.run_id, key, batch.experiment_id].append(points)
    for (run_id, key, experiment_id), parts in sorted(by_curve.items(), key=lambda item: item[0]):
        yield (run_id, experiment_id, key, *_summary(parts[0] if len(parts) == 1 else concatenate(parts)))


def _summary(points: Points) -> tuple[int, float | None, int, int, float | None, float | None]:
    """Returns count; value (None for NaN), step and time of the last point; min and max value (None if all
    are NaN)."""
    if len(points) == 1:
        value, step, ms = float(points.value[0]), int(points.step[0]), int(points.ms[0])
        number = None if math.isnan(value) else value
        return 1, number, step, ms, number, number
    # As in MLflow, the largest value wins among points of the same step and time, with NaN as 0.
    last = int(np.lexsort((np.where(np.isnan(points.value), 0.0, points.value), points.ms, points.step))[-1])
    value = float(points.value[last])
    numbers = points.value[~np.isnan(points.value)]
    smallest, largest = (float(numbers.min()), float(numbers.max())) if len(numbers) else (None, None)
    return (
        len(points),
        None if math.isnan(value) else value,
        int(points.step[last]),
        int(points.ms[last]),
        smallest,
        largest,
    )
