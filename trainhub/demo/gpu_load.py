"""What the GPUs of past runs measured, as blocks of a report."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from trainhub_launch.telemetry import BUCKET_S, Block

METRICS = (
    "utilization_pct",
    "memory_bandwidth_pct",
    "memory_used_bytes",
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
)
IDLE = (0.0, 0.0, 0.6e9, 68.0, 33.0, 345.0)
BUSY = (93.0, 48.0, 48e9, 610.0, 66.0, 1755.0)
# Standard deviation of each number from one bucket to the next.
NOISE = (3.0, 4.0, 0.2e9, 18.0, 0.8, 25.0)
# Buckets until a GPU has reached the temperature of its load.
WARMING = 18
IDLE_S = 3600


def block(gpus: Sequence[str], busy: Collection[str], start: float, seconds: float, seed: int) -> Block:
    """Returns the buckets of all GPUs of a node over a span of which `busy` ones work."""
    first = int(start) // BUCKET_S * BUCKET_S
    steps = max(1, int(seconds) // BUCKET_S)
    dice = np.random.default_rng(seed)
    means = np.empty((steps, len(gpus), len(METRICS)), np.float32)
    for place, gpu in enumerate(gpus):
        means[:, place] = BUSY if gpu in busy else IDLE
        if gpu in busy:
            warming = 1 - np.exp(-np.arange(steps) / WARMING)
            temperature = METRICS.index("temperature_c")
            means[:, place, temperature] = IDLE[temperature] + warming * (
                BUSY[temperature] - IDLE[temperature]
            )
            means[:, place] += dice.normal(0, NOISE, (steps, len(METRICS)))
    np.clip(means[:, :, :2], 0, 100, out=means[:, :, :2])
    peaks = means * np.float32(1.03)
    np.clip(peaks[:, :, :2], 0, 100, out=peaks[:, :, :2])
    return Block(first, BUCKET_S, tuple(gpus), METRICS, means.tobytes(), peaks.tobytes())


def idle(gpus: Sequence[str], until: float) -> tuple[Block, ...]:
    """Returns the last hour of a node on which nothing ran."""
    return (block(gpus, (), until - IDLE_S, IDLE_S, 0),)
