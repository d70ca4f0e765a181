"""Streams all points of a run's curves as CSV, in pieces (docs/adr/0003)."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterator

import numpy as np
from django.http import QueryDict
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from clusters.api.telemetry_answers import file_name
from jobs.models import Run
from jobs.retention.removals import raise_if_removed
from jobs.states import DataKind
from tracking.curves.curve_query import check_parameters, parse_keys
from tracking.curves.run_selection import is_number
from tracking.metrics import curve_reader
from tracking.metrics.points import Points
from tracking.models import Metric, MetricBlock, MetricSlice
from trainhub_launch.errors import SpecError
from workspaces.access import Principal
from workspaces.http.auth import require_person
from workspaces.http.problems import FieldProblem, not_found, problem_responses
from workspaces.http.threads import in_thread
from workspaces.spreadsheets import plain_text

BATCH_ROWS = 20_000
# Enough that a query is worth its cost, and not so much that the hub holds more than some tens of MiB of one
# download.
KEYS_AT_ONCE, POINTS_AT_ONCE = 500, 1_000_000
HEAD = "metric,step,time,value\n"


@problem_responses
async def metrics(request: Request) -> Response:
    """Sends all points of `keys` (default: all metrics) as CSV with the columns metric, step, time (Unix
    seconds) and value. NaN and infinities are written as words."""
    principal = await require_person(request)
    query = QueryDict(request.url.query)
    try:
        check_parameters(query, {"keys", "key"})
        keys = parse_keys(query, is_required=False)
    except SpecError as error:
        raise FieldProblem(400, "Bad request", error.field, error.message) from error
    run, counts = await in_thread(_find_run, principal, request.path_params["run"], keys)
    name = file_name(f"run-{run.number}", "metrics")
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.csv"',
        "Cache-Control": "private, no-cache",
    }
    return StreamingResponse(_pieces(run.pk, counts), media_type="text/csv; charset=utf-8", headers=headers)


def _find_run(principal: Principal, name: str, keys: tuple[str, ...]) -> tuple[Run, list[tuple[str, int]]]:
    """Returns the run, and its selected curves with their number of points."""
    key = {"number": int(name)} if is_number(name) else {"pk": name}
    run = Run.objects.for_workspace(principal.workspace).filter(**key).first()
    if run is None:
        raise not_found("No such run in this workspace.")
    if not (
        MetricSlice.objects.filter(run=run).exists() or MetricBlock.objects.filter(metric__run=run).exists()
    ):
        raise_if_removed(run.pk, DataKind.METRICS)
    rows = Metric.objects.filter(run=run)
    selected = rows.filter(key__in=keys) if keys else rows
    return run, list(selected.order_by("key").values_list("key", "count"))


async def _pieces(run_id: str, counts: list[tuple[str, int]]) -> AsyncIterator[bytes]:
    yield HEAD.encode()
    for keys in _key_batches(counts):
        for key, points in (await in_thread(curve_reader.histories, run_id, keys)).items():
            for start in range(0, len(points), BATCH_ROWS):
                # In pieces and in threads: formatting a million numbers takes seconds, in which other
                # requests must be answered.
                yield await in_thread(_rows, key, points[start : start + BATCH_ROWS])


def _key_batches(counts: list[tuple[str, int]]) -> Iterator[list[str]]:
    """Yields batches of curves to read together: many small ones or one large one."""
    keys: list[str] = []
    points = 0
    for key, count in counts:
        if keys and (points + count > POINTS_AT_ONCE or len(keys) == KEYS_AT_ONCE):
            yield keys
            keys, points = [], 0
        keys.append(key)
        points += count
    if keys:
        yield keys


def _rows(key: str, points: Points) -> bytes:
    """Returns CSV rows; `repr` of a float is the shortest text that parses to the same number."""
    words = np.where(np.isnan(points.value), "NaN", np.where(points.value > 0, "Infinity", "-Infinity"))
    finite = np.isfinite(points.value)
    values = [
        repr(value) if is_finite else word
        for value, is_finite, word in zip(points.value.tolist(), finite, words, strict=True)
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    times = (f"{ms // 1000}.{ms % 1000:03d}" for ms in points.ms.tolist())
    writer.writerows(zip([plain_text(key)] * len(points), points.step.tolist(), times, values, strict=True))
    return text.getvalue().encode()


routes = [Route("/api/v1/runs/{run:str}/metrics.csv", metrics, methods=["GET"], name="run_metrics_csv")]
