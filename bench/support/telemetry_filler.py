"""Fills the database of a hub with the past of a fleet: a process of its own, started by bench.charts with
that hub's settings.

Beside the packed chunks of the first node it stores the same numbers as plain rows, and prints as JSON what
each takes."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import django
import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402 - only now are the models there

from clusters.models import Cluster, Gpu, Node, TelemetryChunk, TelemetrySlice  # noqa: E402
from clusters.telemetry import compaction  # noqa: E402
from clusters.telemetry.chunks import POINTS, Chunk, chunk_bytes, empty_chunk, span_s  # noqa: E402
from clusters.telemetry.expiry import retention_s  # noqa: E402
from clusters.telemetry.slice_codec import Numbers, slice_bytes  # noqa: E402
from trainhub_launch.metrics import GPU_METRICS, HOST_METRICS  # noqa: E402
from trainhub_launch.telemetry import BUCKET_S, HOST, Block  # noqa: E402

GPUS = 8
NOT_FOLDED_S = 1320
GPU_NAMES = tuple(metric.key for metric in GPU_METRICS)
HOST_NAMES = tuple(metric.key for metric in HOST_METRICS)
IDLE = ("throttled_thermal_pct", "throttled_hardware_pct", "encoder_pct", "decoder_pct", "fp64_active_pct")
STEADY = {"power_limit_w": 700.0, "memory_reserved_bytes": 612_368_384.0, "memory_clock_mhz": 2619.0}


def numbers(buckets: int, seed: int, names: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Means and maxima of a GPU that trains for hours, with pauses between epochs; [metric][bucket]."""
    random = np.random.default_rng(seed)
    at = np.arange(buckets)
    busy = np.sin(at / 400 + seed) > -0.5
    work = np.where(busy & (at % 30 < 28), np.clip(random.normal(94, 2, buckets), 0, 100), 0)
    mean = np.empty((len(names), buckets), np.float32)
    for row, name in enumerate(names):
        if name in STEADY or name in IDLE:
            mean[row] = STEADY.get(name, 0.0)
        elif name.endswith("_bytes"):
            mean[row] = np.where(busy, 71_234_879_488 + (at // 360 % 3) * 104_857_600, 562_036_736)
        elif name.endswith("_c"):
            mean[row] = np.round(30 + np.convolve(work, np.ones(30) / 30, "same") * 0.45, 1)
        else:
            top = {"_w": 620.0, "z": 1980.0, "_s": 3e9}.get(
                name[-2:], 1980.0 if name.endswith("mhz") else 90.0
            )
            mean[row] = np.round(work / 94 * top + random.normal(0, top / 40, buckets) * busy, 1).clip(0)
    most = mean + np.where(mean > 0, np.abs(random.normal(0, 1, mean.shape)) * mean * 0.03, 0).round(
        1
    ).astype(np.float32)
    return mean, most.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--days", type=int, default=30)
    options = parser.parse_args()
    now = int(time.time()) // 600 * 600
    longest_s = max(map(span_s, POINTS))
    begin = (now - options.days * 86400) // longest_s * longest_s
    cluster = Cluster.objects.create(name="bench")
    subjects = [HOST, *(f"GPU-{index}" for index in range(GPUS))]
    data = {
        subject: numbers((now - begin) // BUCKET_S, seed, HOST_NAMES if subject == HOST else GPU_NAMES)
        for seed, subject in enumerate(subjects)
    }
    packed = {
        subject: list(_packed(*pair, subject=subject, begin=begin, now=now)) for subject, pair in data.items()
    }
    took = []
    for number in range(options.nodes):
        name = f"bench-{number}"
        slices = _slices(name, data, begin, now)
        took.append(_store(cluster, name, packed, slices))
    # The statistics that an installation has after its first minutes.
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    told: dict[str, Any] = {"bytes_per_gpu_day": {}, "rows": _beside(data["GPU-0"], begin, now)}
    for step in POINTS:
        total = sum(
            len(row.data) for subject in subjects if subject for row in packed[subject] if row.step_s == step
        )
        days = min(retention_s()[step], now - begin) / 86400
        told["bytes_per_gpu_day"][step] = total / GPUS / days
    told["fold_s"] = _folded(cluster, packed, _slices("folded", data, begin, now), now)
    told["slice_bytes"] = sum(map(len, slices.values())) / len(slices)
    told["slice_s"] = min(took)
    told["chunks"] = TelemetryChunk.objects.count()
    print("FILLED", json.dumps(told))


def _packed(mean: Numbers, most: Numbers, *, subject: str, begin: int, now: int) -> Iterator[TelemetryChunk]:
    """Everything up to the newest minutes, as folding leaves it."""
    names = HOST_NAMES if subject == HOST else GPU_NAMES
    folded = (now - NOT_FOLDED_S - begin) // BUCKET_S // 60 * 60
    for step, kept in retention_s().items():
        each = step // BUCKET_S
        shape = (len(names), folded // each, each)
        means, peaks = (
            mean[:, :folded].reshape(shape).mean(axis=2),
            most[:, :folded].reshape(shape).max(axis=2),
        )
        for first in range(0, means.shape[1], POINTS[step]):
            start = begin + first * step
            if start + span_s(step) < now - kept:
                continue
            part = means[:, first : first + POINTS[step]]
            chunk = empty_chunk(start, step, POINTS[step], names)
            chunk.mean[:, : part.shape[1]], chunk.count[:, : part.shape[1]] = part, each
            chunk.max[:, : part.shape[1]] = peaks[:, first : first + POINTS[step]]
            yield _row(subject, chunk)


def _row(subject: str, chunk: Chunk) -> TelemetryChunk:
    return TelemetryChunk(subject=subject, step_s=chunk.step_s, start=chunk.start, data=chunk_bytes(chunk))


def _slices(node: str, data: dict[str, tuple[Numbers, Numbers]], begin: int, now: int) -> dict[int, bytes]:
    first = (now - NOT_FOLDED_S - begin) // BUCKET_S // 60 * 60
    blocks = []
    for told, names in (([subject for subject in data if subject], GPU_NAMES), ([HOST], HOST_NAMES)):
        values, peaks = (
            np.stack([data[subject][which][:, first:].T for subject in told], axis=1) for which in (0, 1)
        )
        subjects = tuple(subject and f"{node}-{subject}" for subject in told)
        blocks.append(
            Block(begin + first * BUCKET_S, BUCKET_S, subjects, names, values.tobytes(), peaks.tobytes())
        )
    return slice_bytes(blocks)


def _store(
    cluster: Cluster, name: str, packed: dict[str, list[TelemetryChunk]], slices: dict[int, bytes]
) -> float:
    """Seconds to store one slice."""
    node = Node.objects.create(cluster=cluster, name=name, token_digest=name)
    Gpu.objects.bulk_create(
        Gpu(uuid=f"{name}-GPU-{index}", node=node, index=index, name="NVIDIA H200") for index in range(GPUS)
    )
    rows = (
        TelemetryChunk(
            node=node,
            subject=subject and f"{name}-{subject}",
            step_s=row.step_s,
            start=row.start,
            data=row.data,
        )
        for subject, chunks in packed.items()
        for row in chunks
    )
    TelemetryChunk.objects.bulk_create(rows, batch_size=200)
    started = time.perf_counter()
    TelemetrySlice.objects.bulk_create(
        (TelemetrySlice(node=node, start=start, data=data) for start, data in slices.items()), batch_size=200
    )
    return (time.perf_counter() - started) / len(slices)


def _folded(
    cluster: Cluster, packed: dict[str, list[TelemetryChunk]], slices: dict[int, bytes], now: int
) -> float:
    """Seconds of CPU of this process to fold what a node has told in 20 minutes, into chunks that are half
    full."""
    _store(cluster, "folded", packed, slices)
    node = Node.objects.get(name="folded")
    begin = time.process_time()
    compaction.fold(node.pk, now)
    took = time.process_time() - begin
    node.delete()
    return took


def _beside(pair: tuple[Numbers, Numbers], begin: int, now: int) -> dict[str, float]:
    """The same as rows of 56 numbers, one per GPU and point: what a day takes, and how long the charts'
    query."""
    columns = [f"{kind}_{place}" for kind in ("mean", "max") for place in range(len(GPU_NAMES))]
    made = ", ".join(f"{column} real" for column in columns)
    with connection.cursor() as cursor:
        figures: dict[str, float] = {}
        for label, step, days in (("24 h", 60, 1), ("30 d", 600, 30)):
            table = f"bench_rows_{step}"
            cursor.execute(
                f"CREATE TABLE {table} (gpu varchar(96), at bigint, {made}, PRIMARY KEY (gpu, at))"
            )
            each, first = step // BUCKET_S, max(0, (now - days * 86400 - begin) // BUCKET_S)
            count = (pair[0].shape[1] - first) // each
            shape = (len(GPU_NAMES), count, each)
            means, peaks = (
                matrix[:, first : first + count * each].reshape(shape).max(axis=2) for matrix in pair
            )
            took: list[float] = []
            slots = ", ".join(["%s"] * (2 + len(columns)))
            for gpu in range(GPUS):
                lines = np.concatenate((means, peaks)).T.astype(float).round(1).tolist()
                rows = [
                    (f"GPU-{gpu}", begin + (first + place * each) * BUCKET_S, *line)
                    for place, line in enumerate(lines)
                ]
                started = time.perf_counter()
                with transaction.atomic():
                    cursor.executemany(f"INSERT INTO {table} VALUES ({slots})", rows)
                took.append((time.perf_counter() - started) / len(rows))
            cursor.execute("ANALYZE")
            figures[f"{label}, µs to store one"] = min(took) * 1e6
            figures[f"{label}, ms"] = _timed(cursor, table, days * 86400 // 300)
            figures[f"{label}, bytes per GPU-day"] = _size(cursor, table) / GPUS / days
        return figures


def _timed(cursor: Any, table: str, step: int) -> float:
    """The six usual metrics, in 300 points."""
    columns = ", ".join(f"avg(mean_{place}), max(max_{place})" for place in range(6))
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        cursor.execute(f"SELECT gpu, at / {step}, {columns} FROM {table} GROUP BY gpu, at / {step}")
        cursor.fetchall()
        seconds.append(time.perf_counter() - begin)
    return sorted(seconds)[2] * 1e3


def _size(cursor: Any, table: str) -> float:
    if connection.vendor == "postgresql":
        cursor.execute("SELECT pg_total_relation_size(%s)", [table])
    else:
        cursor.execute(
            "SELECT sum(pgsize) FROM dbstat WHERE name = %s OR name LIKE %s",
            [table, f"sqlite_autoindex_{table}%"],
        )
    return float(cursor.fetchone()[0] or 0)


if __name__ == "__main__":
    main()
