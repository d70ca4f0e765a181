"""Says whether the GPUs of a run wait for data, from what was measured in the last minutes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clusters.models import Node
from clusters.telemetry.series import MetricCurve, read_node
from jobs.reading.rank_rows import RankRow
from trainhub_launch.scheduler.sizes import bytes_text

WINDOW_S, LIMIT_WINDOW_S = 300, 7 * 86400
# Ranks first import their libraries and open their data. What their GPUs do meanwhile tells nothing, and
# neither does a shorter time afterwards.
WARM_UP_S, MIN_WINDOW_S = 30, 60
POINTS = 60
# GPUs that work less than this wait for something.
IDLE_BELOW_PCT = 60.0
# Ranks that read less wait for something else.
LEAST_BYTES_S = 1e6
# Of the fastest that was ever measured on the node.
NEAR_LIMIT = 0.8
# Below this nobody has ever needed the disk or the network.
LEAST_LIMIT_BYTES_S = 20e6
SOURCES = {"disk_read_bytes_s": "disk", "network_rx_bytes_s": "network"}


@dataclass(frozen=True)
class Reading:
    """What a node did in the last minutes. `used_pct`: of the run's GPUs on it, None = not measured. `now`
    and `fastest`: bytes a second by the metric of SOURCES, in the window and in the last week."""

    node: str
    used_pct: float | None
    now: Mapping[str, float]
    fastest: Mapping[str, float]

    @property
    def limit(self) -> str:
        """The metric that is at its limit, "" if none is."""
        near = (
            name
            for name, rate in self.now.items()
            if self.fastest.get(name, 0.0) >= LEAST_LIMIT_BYTES_S and rate >= NEAR_LIMIT * self.fastest[name]
        )
        return next(near, "")


def read_node_load(node: Node, gpus: Sequence[str], since: float, now: float | None = None) -> Reading:
    """`gpus`: UUIDs of those that the run uses on the node. `since`: when its ranks started, in seconds since
    1970; what was measured before they were warm does not count."""
    moment = time.time() if now is None else now
    begin = max(since + WARM_UP_S, moment - WINDOW_S)
    if moment - begin < MIN_WINDOW_S:
        return Reading(node.name, None, {}, {})
    recent = read_node(
        node,
        gpus,
        gpu_metrics=("utilization_pct",),
        host_metrics=tuple(SOURCES),
        start=begin,
        end=moment,
        points=POINTS,
        now=now,
    )
    earlier = read_node(
        node,
        [],
        gpu_metrics=(),
        host_metrics=tuple(SOURCES),
        start=moment - LIMIT_WINDOW_S,
        end=moment,
        points=POINTS,
        now=now,
    )
    used = [
        _mean(curves["utilization_pct"]) for curves in recent.gpus.values() if "utilization_pct" in curves
    ]
    measured = [value for value in used if value is not None]
    return Reading(
        node.name,
        float(np.mean(measured)) if measured else None,
        {name: mean for name, curve in recent.host.items() if (mean := _mean(curve)) is not None},
        {name: _highest(curve) for name, curve in earlier.host.items()},
    )


def starving_sentence(readings: Sequence[Reading], rows: Sequence[RankRow]) -> str:
    """Returns that GPUs seem to wait for data, with what to do; "" if they do not, or read nothing."""
    used = [reading.used_pct for reading in readings if reading.used_pct is not None]
    if not used or not rows or np.mean(used) >= IDLE_BELOW_PCT:
        return ""
    if np.mean([max(row.calls_bytes_s, row.storage_bytes_s) for row in rows]) < LEAST_BYTES_S:
        return ""
    begin = f"In the last minutes the GPUs were used {np.mean(used):.0f} % while their ranks read data."
    full = next((reading for reading in readings if reading.limit), None)
    if full is None:
        return (
            f"{begin} Disk and network of the nodes can do more than they did: give the data loader more "
            "workers (num_workers of PyTorch's DataLoader), or let it do less work for each sample."
        )
    source = SOURCES[full.limit]
    return (
        f"{begin} The {source} of {full.node} was at its limit: {_speed(full.now[full.limit])} of the "
        f"{_speed(full.fastest[full.limit])} that were measured there. "
        + (
            "Read from the node's own disk instead: a dataset or datastore that nodes download."
            if source == "network"
            else "Store the data in a smaller form, use nodes with more memory, which keeps it, or faster "
            "disks."
        )
    )


def _mean(curve: MetricCurve) -> float | None:
    values = curve.mean[~np.isnan(curve.mean)]
    return float(values.mean()) if len(values) else None


def _highest(curve: MetricCurve) -> float:
    values = curve.max[~np.isnan(curve.max)]
    return float(values.max()) if len(values) else 0.0


def _speed(rate: float) -> str:
    return f"{bytes_text(round(rate))}/s"
