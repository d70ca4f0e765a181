"""Curves point by point, page by page; and thinned, as charts want them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.models import Run
from tracking.callers import Caller
from tracking.metrics import curve_reader
from tracking.metrics.points import Points
from tracking.mlflow import lookup
from tracking.mlflow.protocol import fields, key_rules, page_tokens, row_json
from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.http import Asked
from tracking.mlflow.protocol.row_json import number

MOST_OF_PAGE = 1_000_000
MOST_IN_BULK = 25_000
MOST_OF_A_RUN = 2500
MOST_RUNS = 100
Told = dict[str, Any]


def get(caller: Caller, asked: Asked) -> Told:
    """All points of a run's metric by time, or as many as are asked for at once."""
    found = lookup.run(caller, fields.run_id(asked))
    key = key_rules.shortened(fields.words(asked, "metric_key"), key_rules.LONGEST_KEY)
    skip, most = page_tokens.start(asked), None
    if asked.get("max_results") is not None:
        most = fields.most(asked, MOST_OF_PAGE, 2**31 - 1)
    points = _by_time(curve_reader.history(found.pk, key))
    end = len(points) if most is None else min(len(points), skip + most)
    told: Told = {"metrics": _spelled(key, points[skip:end])}
    return row_json.full(told | ({"next_page_token": page_tokens.token(end)} if end < len(points) else {}))


def bulk(caller: Caller, asked: Asked) -> Told:
    """Of several runs, whole until there are too many."""
    run_ids, key = (
        _runs(caller, asked, "run_id"),
        key_rules.shortened(fields.words(asked, "metric_key"), key_rules.LONGEST_KEY),
    )
    most = min(fields.most(asked, MOST_IN_BULK, 2**31 - 1), MOST_IN_BULK)
    found: list[Told] = []
    for run_id in sorted(run_ids):
        found += _spelled(key, _by_time(curve_reader.history(run_id, key))[: most - len(found)], run_id)
        if len(found) >= most:
            break
    return {"metrics": found}


def bulk_interval(caller: Caller, asked: Asked) -> Told:
    """Of several runs as many points of a span of steps as are asked for, evenly chosen; the first and the
    last always."""
    run_ids, key = _runs(caller, asked, "run_ids"), fields.words(asked, "metric_key")
    most = fields.most(asked, MOST_OF_A_RUN, MOST_OF_A_RUN)
    start, end = fields.whole(asked, "start_step"), fields.whole(asked, "end_step")
    if (start is None) is not (end is None):
        raise MlflowError(INVALID, "If either start step or end step are specified, both must be specified.")
    if start is not None and end is not None and start > end:
        sentence = f"end_step must be greater than start_step. Found start_step={start} and end_step={end}."
        raise MlflowError(INVALID, sentence)
    found: list[Told] = []
    for run_id in run_ids:
        points = _by_step(curve_reader.history(run_id, key))
        if start is not None and end is not None:
            points = points[(points.step >= start) & (points.step <= end)]
        found += _spelled(key, points[_even(len(points), most)], run_id)
    return row_json.full({"metrics": found})


def _runs(caller: Caller, asked: Asked, name: str) -> list[str]:
    """Ids, each once, all of the workspace."""
    keys = list(dict.fromkeys(fields.texts(asked, name)))
    if not keys:
        raise fields.missing(name)
    if len(keys) > MOST_RUNS:
        raise MlflowError(
            INVALID,
            f"{name}: at most {MOST_RUNS} runs can be asked for at once. Received {len(keys)} run_ids.",
        )
    known = set(Run.objects.filter(workspace=caller.workspace, pk__in=keys).values_list("pk", flat=True))
    for key in keys:
        if key not in known:
            raise lookup.no_run(key)
    return keys


def _by_time(points: Points) -> Points:
    """By time, then step, then value: pages must not differ in what comes first."""
    return points[np.lexsort((points.value, points.step, points.ms))]


def _by_step(points: Points) -> Points:
    return points[np.lexsort((points.value, points.ms, points.step))]


def _even(count: int, most: int) -> npt.NDArray[np.intp]:
    """Which of `count` points stand for all: the first of each of `most` buckets of one size, and the last of
    all."""
    if count <= most:
        return np.arange(count)
    small, larger = divmod(count, most)
    sizes = np.full(most, small)
    sizes[:larger] += 1
    chosen = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    chosen[-1] = count - 1
    return chosen


def _spelled(key: str, points: Points, run_id: str = "") -> list[Told]:
    more = {"run_id": run_id} if run_id else {}
    return [
        {"key": key, "value": number(value), "timestamp": ms, "step": step, **more}
        for value, ms, step in zip(
            points.value.tolist(), points.ms.tolist(), points.step.tolist(), strict=True
        )
    ]
