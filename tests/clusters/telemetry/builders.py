"""Blocks of buckets as a node sends them, and the values that a hub has stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusters.models import Node, TelemetrySlice
from clusters.telemetry.slice_codec import slice_bytes
from trainhub_launch.telemetry import BUCKET_S, HOST, Block, pack

Bucket = Mapping[str, Mapping[str, tuple[float, float]]]
"""subject -> metric -> (mean, max); what is absent is not known."""


def block(start: int, buckets: Sequence[Bucket]) -> Block:
    """One block of subjects that are alike, bucket after bucket from `start` on."""
    subjects = tuple(dict.fromkeys(subject for bucket in buckets for subject in bucket))
    metrics = tuple(
        dict.fromkeys(name for bucket in buckets for numbers in bucket.values() for name in numbers)
    )

    def matrix(which: int) -> bytes:
        rows = [
            [{name: pair[which] for name, pair in bucket.get(subject, {}).items()} for subject in subjects]
            for bucket in buckets
        ]
        return pack(rows, metrics)

    return Block(start, BUCKET_S, subjects, metrics, matrix(0), matrix(1))


def gpu_block(
    start: int, uuid: str, means: Sequence[float], metric: str = "utilization_pct", above: float = 1.0
) -> Block:
    """One metric of one GPU over time; its maxima are that far above the means."""
    return block(start, [{uuid: {metric: (mean, mean + above)}} for mean in means])


def host_block(start: int, means: Sequence[float], metric: str = "cpu_pct") -> Block:
    return gpu_block(start, HOST, means, metric)


def stored(node: Node, *blocks: Block) -> None:
    """As the hub has it once the node has told them."""
    TelemetrySlice.objects.bulk_create(
        TelemetrySlice(node=node, start=start, data=data) for start, data in slice_bytes(blocks).items()
    )
