"""Draws the GPU utilisation of runs over the last minutes as small SVG lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clusters.models import Lease, Node
from clusters.telemetry.heat import read_heat
from clusters.telemetry.slice_codec import Numbers

SPAN_S = 900
POINTS = 30
WIDTH, HEIGHT = 90, 18


@dataclass(frozen=True)
class Sparkline:
    """The mean utilisation of a run's GPUs. `paths`: SVG paths in a box of WIDTH × HEIGHT, a new one after
    each gap. `last_pct`: the latest known value in percent, or None."""

    paths: tuple[str, ...]
    last_pct: float | None

    @property
    def box(self) -> str:
        return f"0 0 {WIDTH} {HEIGHT}"


def sparklines(runs: Collection[str], now: float) -> dict[str, Sparkline]:
    """Returns run id -> line of the last SPAN_S seconds before `now` (Unix seconds). Runs without GPUs or
    without measurements are left out."""
    gpus: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for holder, node, uuids in Lease.objects.filter(holder__in=runs, released_at=None).values_list(
        "holder", "node_id", "gpus"
    ):
        gpus[holder] |= {(node, uuid) for uuid in uuids}
    nodes = Node.objects.filter(pk__in={node for keys in gpus.values() for node, _ in keys})
    if not nodes:
        return {}
    rows = read_heat(list(nodes), "utilization_pct", start=now - SPAN_S, end=now, points=POINTS, now=now).rows
    lines = {run: _line(rows, keys) for run, keys in gpus.items()}
    return {run: line for run, line in lines.items() if line is not None}


def _line(rows: Mapping[tuple[int, str], Numbers], keys: Collection[tuple[int, str]]) -> Sparkline | None:
    series = [rows[key] for key in keys if key in rows]
    if not series:
        return None
    table = np.stack(series)
    # np.nanmean would warn about every point at which no GPU has a value.
    count = (~np.isnan(table)).sum(axis=0)
    means = np.full(table.shape[1], np.nan, np.float32)
    np.divide(np.nansum(table, axis=0), count, out=means, where=count > 0)
    last = means[count > 0]
    return Sparkline(tuple(svg_paths(means, 0.0, 100.0)), float(last[-1]) if len(last) else None)


def svg_paths(values: NDArray[np.floating[Any]], low: float, high: float) -> list[str]:
    """Returns an SVG path for each part without gaps (NaN), in a box of WIDTH × HEIGHT that spans the values
    from `low` to `high`. It begins with a short dash, because a path of a single point would be invisible."""
    step = WIDTH / max(1, len(values) - 1)
    paths: list[str] = []
    is_drawing = False
    for place, value in enumerate(values):
        if np.isnan(value):
            is_drawing = False
            continue
        share = (min(float(value), high) - low) / (high - low)
        x, y = place * step, 1 + (HEIGHT - 2) * (1 - share)
        if is_drawing:
            paths[-1] += f"L{x:.1f} {y:.1f}"
        else:
            paths.append(f"M{x:.1f} {y:.1f}h0.5")
        is_drawing = True
    return paths
