"""Facts of a healthy node for the rules, with changes for each test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clusters.alerts.facts import GpuFacts, LeaseFacts, NodeFacts

GIB = 2**30
LEASE = LeaseFacts("a" * 32, 1, "run 41", 1)
BUSY = {
    "utilization_pct": 92.0,
    "power_w": 610.0,
    "power_limit_w": 700.0,
    "memory_used_bytes": 70.0 * GIB,
    "temperature_c": 61.0,
    "throttled_thermal_pct": 0.0,
    "throttled_hardware_pct": 0.0,
}


def gpu(uuid: str = "GPU-a", index: int = 0, **changed: Any) -> GpuFacts:
    """Held and at work. `mean` and `peak` add to its numbers; None there = not known."""
    numbers = {**BUSY, **changed.pop("mean", {})}
    mean = {name: value for name, value in numbers.items() if value is not None}
    peak = {**mean, **changed.pop("peak", {})}
    whole = GpuFacts(
        uuid,
        index,
        "NVIDIA H200",
        140 * GIB,
        mean=mean,
        peak=peak,
        lease=LEASE,
        processes=(
            {
                "pid": 7,
                "name": "python",
                "user": "ann",
                "run": LEASE.holder,
                "attempt": 1,
                "rank": index,
                "memory_bytes": 70 * GIB,
                "sm_pct": None,
            },
        ),
    )
    return replace(whole, **changed)


def node(*gpus: GpuFacts, pk: int = 1, **changed: Any) -> NodeFacts:
    facts: dict[str, Any] = {
        "memory_bytes": 64 * GIB,
        "memory_used_bytes": 20.0 * GIB,
        "disk_free_bytes": 900 * GIB,
        "ports": {"mlx5_0/1": True},
    }
    return NodeFacts(pk, "alpha", gpus=gpus, **{**facts, **changed})
