"""MLflow's metric history calls: all points in pages, several runs at once, and samples for charts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jobs.models import Run
from tracking.callers import Caller
from tracking.metrics import curve_reader
from tracking.metrics.points import Points
from tracking.mlflow import lookup
from tracking.mlflow.protocol import fields, key_rules, page_tokens, row_json
from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, JsonObject
from tracking.mlflow.protocol.row_json import json_number

MAX_PAGE_POINTS = 1_000_000
# These three are the limits of MLflow's server.
MAX_BULK_POINTS = 25_000
MAX_POINTS_PER_RUN = 2500
MAX_RUNS = 100


def get_history(caller: Caller, args: CallArgs) -> JsonObject:
    """Returns the points of a run's metric by time: all of them, or a page of `max_results`."""
    run = lookup.run(caller, fields.run_id(args))
    key = key_rules.shorten_key(fields.required_text(args, "metric_key"), key_rules.MAX_KEY_LENGTH)
    skip, limit = page_tokens.offset_of(args), None
    if args.get("max_results") is not None:
        limit = fields.max_results(args, MAX_PAGE_POINTS, 2**31 - 1)
    points = _by_time(curve_reader.curve_history(run.pk, key))
    end = len(points) if limit is None else min(len(points), skip + limit)
    page: JsonObject = {"metrics": _points_json(key, points[skip:end])}
    return row_json.without_empty(
        page | ({"next_page_token": page_tokens.encode_offset(end)} if end < len(points) else {})
    )


def get_history_bulk(caller: Caller, args: CallArgs) -> JsonObject:
    """Returns the points of several runs, run by run, until there are `max_results`."""
    run_ids, key = (
        _run_ids(caller, args, "run_id"),
        key_rules.shorten_key(fields.required_text(args, "metric_key"), key_rules.MAX_KEY_LENGTH),
    )
    limit = min(fields.max_results(args, MAX_BULK_POINTS, 2**31 - 1), MAX_BULK_POINTS)
    records: list[JsonObject] = []
    # In the order of MLflow's server, so that the limit cuts off the same points.
    for run_id in sorted(run_ids):
        records += _points_json(
            key, _by_time(curve_reader.curve_history(run_id, key))[: limit - len(records)], run_id
        )
        if len(records) >= limit:
            break
    return {"metrics": records}


def get_history_bulk_interval(caller: Caller, args: CallArgs) -> JsonObject:
    """Returns an even sample of each run's points between two steps, always with the first and the last."""
    run_ids, key = (
        _run_ids(caller, args, "run_ids"),
        key_rules.shorten_key(fields.required_text(args, "metric_key"), key_rules.MAX_KEY_LENGTH),
    )
    limit = fields.max_results(args, MAX_POINTS_PER_RUN, MAX_POINTS_PER_RUN)
    start, end = fields.integer(args, "start_step"), fields.integer(args, "end_step")
    if (start is None) is not (end is None):
        raise MlflowError(INVALID, "If either start step or end step are specified, both must be specified.")
    if start is not None and end is not None and start > end:
        sentence = f"end_step must be greater than start_step. Found start_step={start} and end_step={end}."
        raise MlflowError(INVALID, sentence)
    records: list[JsonObject] = []
    for run_id in run_ids:
        points = _by_step(curve_reader.curve_history(run_id, key))
        if start is not None and end is not None:
            points = points[(points.step >= start) & (points.step <= end)]
        records += _points_json(key, points[_even_sample(len(points), limit)], run_id)
    return row_json.without_empty({"metrics": records})


def _run_ids(caller: Caller, args: CallArgs, name: str) -> list[str]:
    """Returns the distinct run ids of the argument `name`. Raises MlflowError for one outside the
    workspace."""
    keys = list(dict.fromkeys(fields.texts(args, name)))
    if not keys:
        raise fields.missing(name)
    if len(keys) > MAX_RUNS:
        raise MlflowError(
            INVALID,
            f"{name}: at most {MAX_RUNS} runs can be requested at once. Received {len(keys)} run_ids.",
        )
    existing = set(Run.objects.filter(workspace=caller.workspace, pk__in=keys).values_list("pk", flat=True))
    for key in keys:
        if key not in existing:
            raise lookup.run_missing(key)
    return keys


def _by_time(points: Points) -> Points:
    """Sorts by time, step and value: pages need a total order."""
    return points[np.lexsort((points.value, points.step, points.ms))]


def _by_step(points: Points) -> Points:
    return points[np.lexsort((points.value, points.ms, points.step))]


def _even_sample(count: int, limit: int) -> npt.NDArray[np.intp]:
    """Returns indices of at most `limit` of `count` points: the first of each of `limit` equal buckets, and
    the last point."""
    if count <= limit:
        return np.arange(count)
    small, larger = divmod(count, limit)
    sizes = np.full(limit, small)
    sizes[:larger] += 1
    chosen = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    chosen[-1] = count - 1
    return chosen


def _points_json(key: str, points: Points, run_id: str = "") -> list[JsonObject]:
    more = {"run_id": run_id} if run_id else {}
    return [
        {"key": key, "value": json_number(value), "timestamp": ms, "step": step, **more}
        for value, ms, step in zip(
            points.value.tolist(), points.ms.tolist(), points.step.tolist(), strict=True
        )
    ]
