"""Answers with telemetry as JSON (numpy arrays encoded by orjson, NaN as null) and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from django.http import HttpResponse

from clusters.api.telemetry_query import iso_time
from clusters.telemetry.bins import Grid
from clusters.telemetry.series import Curves, NodeSeries
from clusters.telemetry.slice_codec import Numbers
from workspaces.spreadsheets import plain_text


@dataclass(frozen=True)
class GpuLabel:
    """A GPU as answers name it; `index` None if the hub no longer has a row for it."""

    uuid: str
    index: int | None
    name: str


@dataclass(frozen=True)
class SeriesAnswer:
    """The series of one node, with its devices in the order of the answer."""

    node: str
    series: NodeSeries
    devices: Sequence[GpuLabel]


def json_response(body: Mapping[str, object]) -> HttpResponse:
    return HttpResponse(
        orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), content_type="application/json"
    )


def node_json(answer: SeriesAnswer) -> dict[str, object]:
    grid, gpu_curves = answer.series.grid, answer.series.gpus
    gpus = [
        {
            "uuid": device.uuid,
            "index": device.index,
            "name": device.name,
            "series": _curves(gpu_curves.get(device.uuid, {})),
        }
        for device in answer.devices
    ]
    return {
        "node": answer.node,
        "step_s": grid.step_s,
        "times": grid.times,
        "host": _curves(answer.series.host),
        "gpus": gpus,
    }


def span_json(grid: Grid) -> dict[str, int]:
    return {"from": grid.start, "to": grid.end}


def csv_response(
    name: str, answers: Sequence[SeriesAnswer], gpu_metrics: Sequence[str], host_metrics: Sequence[str]
) -> HttpResponse:
    """Returns a CSV with a row per time and subject; the machine's rows have an empty `gpu`. Empty fields =
    unknown."""
    columns = [*(("gpu", metric) for metric in gpu_metrics), *(("host", metric) for metric in host_metrics)]
    titles = [f"{scope}_{metric}_{kind}" for scope, metric in columns for kind in ("mean", "max")]
    rows = (row for answer in answers for row in _node_rows(answer, columns))
    return _csv_download(name, ["time", "node", "gpu", "index", *titles], rows)


def heat_csv_response(
    name: str, metric: str, grid: Grid, rows: Iterable[tuple[str, GpuLabel, Numbers | None]]
) -> HttpResponse:
    times = [iso_time(moment) for moment in grid.times.tolist()]
    # Names come from machines: a spreadsheet would run a text that begins with = or + as a formula.
    lines = (
        (at, plain_text(node), plain_text(device.uuid), device.index, value)
        for node, device, mean in rows
        for at, value in zip(times, _number_texts(mean, grid), strict=True)
    )
    return _csv_download(name, ["time", "node", "gpu", "index", f"gpu_{metric}_mean"], lines)


def file_name(*words: str) -> str:
    """Returns a safe file name of letters, digits, dots and dashes."""
    return "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-.") for word in words if word)


def _curves(curves: Curves) -> dict[str, dict[str, Numbers]]:
    return {metric: {"mean": curve.mean, "max": curve.max} for metric, curve in curves.items()}


def _node_rows(answer: SeriesAnswer, columns: Sequence[tuple[str, str]]) -> Iterable[Sequence[object]]:
    grid = answer.series.grid
    times = [iso_time(moment) for moment in grid.times.tolist()]
    subjects: list[tuple[str, GpuLabel | None, Curves]] = (
        [("host", None, answer.series.host)] if answer.series.host else []
    )
    subjects += [("gpu", device, answer.series.gpus.get(device.uuid, {})) for device in answer.devices]
    for scope, device, curves in subjects:
        fields: list[list[str]] = []
        for column_scope, metric in columns:
            curve = curves.get(metric) if column_scope == scope else None
            fields += (
                _number_texts(curve.mean if curve else None, grid),
                _number_texts(curve.max if curve else None, grid),
            )
        head = (
            plain_text(answer.node),
            plain_text(device.uuid) if device else "",
            device.index if device else "",
        )
        for at, values in zip(times, zip(*fields, strict=True), strict=True) if fields else ():
            yield (at, *head, *values)


def _number_texts(numbers: Numbers | None, grid: Grid) -> list[str]:
    """Returns the shortest decimal texts of the numbers; "" for NaN."""
    # numpy formats a float32 by its own precision: 0.1, where a Python float would give 0.10000000149011612.
    if numbers is None:
        return [""] * grid.points
    return ["" if word == "nan" else word for word in numbers.astype(str).tolist()]


def _csv_download(name: str, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows(rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return HttpResponse(text.getvalue().encode(), content_type="text/csv; charset=utf-8", headers=headers)
