"""The last minutes of the GPUs of some runs, each as one small line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from clusters.models import Lease, Node
from clusters.telemetry.heat import read_heat
from clusters.telemetry.slice_codec import Numbers

SPAN_S = 900
POINTS = 30
WIDTH, HEIGHT = 90, 18


@dataclass(frozen=True)
class Sparkline:
    """Mean utilisation of a run's GPUs. `paths`: SVG paths in a box of WIDTH × HEIGHT, one between two
    gaps."""

    paths: tuple[str, ...]
    last_pct: float | None

    @property
    def box(self) -> str:
        return f"0 0 {WIDTH} {HEIGHT}"


def sparklines(runs: Collection[str], now: float) -> dict[str, Sparkline]:
    """By run; none for a run that holds no GPU, or of which nothing was measured."""
    gpus: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for holder, node, uuids in Lease.objects.filter(holder__in=runs, released_at=None).values_list(
        "holder", "node_id", "gpus"
    ):
        gpus[holder] |= {(node, uuid) for uuid in uuids}
    nodes = Node.objects.filter(pk__in={node for keys in gpus.values() for node, _ in keys})
    if not nodes:
        return {}
    rows = read_heat(list(nodes), "utilization_pct", start=now - SPAN_S, end=now, points=POINTS, now=now).rows
    found = {run: _line(rows, keys) for run, keys in gpus.items()}
    return {run: line for run, line in found.items() if line is not None}


def _line(rows: Mapping[tuple[int, str], Numbers], keys: Collection[tuple[int, str]]) -> Sparkline | None:
    known = [rows[key] for key in keys if key in rows]
    if not known:
        return None
    table = np.stack(known)
    count = (~np.isnan(table)).sum(axis=0)
    means = np.full(table.shape[1], np.nan, np.float32)
    np.divide(np.nansum(table, axis=0), count, out=means, where=count > 0)
    last = means[count > 0]
    return Sparkline(tuple(_paths(means)), float(last[-1]) if len(last) else None)


def _paths(means: Numbers) -> list[str]:
    """A point alone is a short dash: a line of no length is not seen."""
    step = WIDTH / max(1, len(means) - 1)
    paths: list[str] = []
    begun = False
    for place, value in enumerate(means):
        if np.isnan(value):
            begun = False
            continue
        x, y = place * step, 1 + (HEIGHT - 2) * (1 - min(float(value), 100.0) / 100)
        if begun:
            paths[-1] += f"L{x:.1f} {y:.1f}"
        else:
            paths.append(f"M{x:.1f} {y:.1f}h0.5")
        begun = True
    return paths
