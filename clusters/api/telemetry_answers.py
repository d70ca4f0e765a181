"""Numbers over time as JSON (numpy's arrays straight through orjson, NaN as null) and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.http import HttpResponse

from clusters.api.telemetry_query import iso_time
from clusters.telemetry.bins import Grid
from clusters.telemetry.series import Curves, NodeSeries
from clusters.telemetry.slice_codec import Numbers
from workspaces.spreadsheets import plain_text


@dataclass(frozen=True)
class GpuLabel:
    """A GPU as answers name it; `index` None where the hub knows it no more."""

    uuid: str
    index: int | None
    name: str


@dataclass(frozen=True)
class SeriesAnswer:
    """The series of one node, with its devices in the order of the answer."""

    node: str
    series: NodeSeries
    devices: Sequence[GpuLabel]


def json_response(body: Mapping[str, Any]) -> HttpResponse:
    return HttpResponse(
        orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), content_type="application/json"
    )


def node_json(told: SeriesAnswer) -> dict[str, Any]:
    on, found = told.series.grid, told.series.gpus
    gpus = [
        {
            "uuid": device.uuid,
            "index": device.index,
            "name": device.name,
            "series": _curves(found.get(device.uuid, {})),
        }
        for device in told.devices
    ]
    return {
        "node": told.node,
        "step_s": on.step_s,
        "times": on.times,
        "host": _curves(told.series.host),
        "gpus": gpus,
    }


def span_json(on: Grid) -> dict[str, Any]:
    return {"from": on.start, "to": on.end}


def csv_response(
    name: str, answers: Sequence[SeriesAnswer], gpu_metrics: Sequence[str], host_metrics: Sequence[str]
) -> HttpResponse:
    """A row per moment and subject: the machine's own with an empty `gpu`. Empty fields = not known."""
    columns = [*(("gpu", metric) for metric in gpu_metrics), *(("host", metric) for metric in host_metrics)]
    titles = [f"{scope}_{metric}_{kind}" for scope, metric in columns for kind in ("mean", "max")]
    rows = (row for told in answers for row in _node_rows(told, columns))
    return _download(name, ["time", "node", "gpu", "index", *titles], rows)


def heat_csv_response(
    name: str, metric: str, on: Grid, rows: Iterable[tuple[str, GpuLabel, Numbers | None]]
) -> HttpResponse:
    times = [iso_time(moment) for moment in on.times.tolist()]
    lines = (
        (at, plain_text(node), plain_text(device.uuid), device.index, value)
        for node, device, mean in rows
        for at, value in zip(times, _words(mean, on), strict=True)
    )
    return _download(name, ["time", "node", "gpu", "index", f"gpu_{metric}_mean"], lines)


def file_name(*words: str) -> str:
    """Of what an address named: letters, digits, dots and dashes."""
    return "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-.") for word in words if word)


def _curves(curves: Curves) -> dict[str, dict[str, Numbers]]:
    return {metric: {"mean": curve.mean, "max": curve.max} for metric, curve in curves.items()}


def _node_rows(told: SeriesAnswer, columns: Sequence[tuple[str, str]]) -> Iterable[Sequence[object]]:
    on = told.series.grid
    times = [iso_time(moment) for moment in on.times.tolist()]
    subjects: list[tuple[str, GpuLabel | None, Curves]] = (
        [("host", None, told.series.host)] if told.series.host else []
    )
    subjects += [("gpu", device, told.series.gpus.get(device.uuid, {})) for device in told.devices]
    for scope, device, curves in subjects:
        fields: list[list[str]] = []
        for of, metric in columns:
            curve = curves.get(metric) if of == scope else None
            fields += (_words(curve.mean if curve else None, on), _words(curve.max if curve else None, on))
        head = (
            plain_text(told.node),
            plain_text(device.uuid) if device else "",
            device.index if device else "",
        )
        for at, values in zip(times, zip(*fields, strict=True), strict=True) if fields else ():
            yield (at, *head, *values)


def _words(numbers: Numbers | None, on: Grid) -> list[str]:
    """The shortest digits that say the number; "" for NaN."""
    if numbers is None:
        return [""] * on.points
    return ["" if word == "nan" else word for word in numbers.astype(str).tolist()]


def _download(name: str, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows(rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return HttpResponse(text.getvalue().encode(), content_type="text/csv; charset=utf-8", headers=headers)
