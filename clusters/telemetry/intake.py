"""Takes in the telemetry of a report: stores buckets, publishes samples, and journals events."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime

import numpy as np

from clusters.models import Node
from clusters.node_reports import gpu_sync
from clusters.telemetry import gpu_events, live_samples, slice_writer
from clusters.telemetry.expiry import retention_s
from clusters.telemetry.slice_codec import bucket_of, slice_bytes
from trainhub_launch.report import Report
from trainhub_launch.telemetry import BUCKET_S, ITEM_BYTES, SAMPLE_S, Block
from workspaces import process_caches

log = logging.getLogger(__name__)
# Tolerance for buckets ahead of the hub's clock: the possible error of a node's clock offset plus a bucket's
# length.
MAX_AHEAD_S = 15
_logged: set[tuple[int, str]] = set()


def ingest_telemetry(node: Node, report: Report, now: datetime) -> tuple[int, int]:
    """Takes in buckets, samples and events. Returns what the answer confirms: `Ack.buckets_until` and
    `Ack.events_until`. A repeated or an older report changes nothing.

    A report without events causes no query while the background loop runs and `gpu_sync` has cached the
    node's GPUs."""
    until = 0
    if report.buckets or report.samples:
        own_gpus = gpu_sync.own_uuids(node)
        until = _take_buckets(
            node, [block for block in report.buckets if block.step_s == BUCKET_S], own_gpus, now.timestamp()
        )
        samples = [block for block in report.samples if block.step_s == SAMPLE_S]
        if samples:
            recent = now.timestamp() - node.clock_offset_s + MAX_AHEAD_S
            live_samples.publish_samples(
                node,
                [
                    part
                    for block in samples
                    if block.start <= recent
                    for part in _owned(node, block, own_gpus)
                ],
            )
    return until, gpu_events.record_gpu_events(node, report.agent, report.events, now) if report.events else 0


@process_caches.register
def clear_cache() -> None:
    _logged.clear()


def _take_buckets(node: Node, blocks: list[Block], own_gpus: Collection[str], now: float) -> int:
    """Queues or stores new buckets. Returns the time by the node's clock up to which every bucket of the
    report is stored or finally rejected."""
    stored, missing = set(slice_writer.stored_starts(node.pk)), set()
    ends: dict[int, int] = {}
    for block in blocks:
        for moment in range(block.start, block.end, BUCKET_S):
            ends[moment + BUCKET_S] = start = bucket_of(moment + node.clock_offset_s)
            if (
                start not in stored
                and not slice_writer.is_waiting(node.pk, start)
                and _is_in_time(node, start, now)
            ):
                missing.add(start)
    if missing:
        parts = [part for block in blocks for part in _owned(node, block, own_gpus)]
        slices = slice_bytes(parts, node.clock_offset_s)
        stored.update(
            slice_writer.put(node.pk, {start: data for start, data in slices.items() if start in missing})
        )
        # Buckets that produce no slice contain nothing that the node may report.
        missing.intersection_update(slices)
    until = 0
    for end in sorted(ends):
        start = ends[end]
        # The node drops everything up to the confirmed time, so the first bucket that is not stored ends it.
        if (start in missing or slice_writer.is_waiting(node.pk, start)) and start not in stored:
            break
        until = end
    return until


def _is_in_time(node: Node, start: int, now: float) -> bool:
    if start > now + MAX_AHEAD_S:
        _log_once(node, "ahead", f"{start - now:.0f} s ahead of the hub's clock")
        return False
    if start < now - retention_s()[BUCKET_S]:
        _log_once(node, "old", "older than the retention time (TELEMETRY_KEEP_10S)")
        return False
    return True


def _owned(node: Node, block: Block, own_gpus: Collection[str]) -> Iterator[Block]:
    """Yields the block without GPUs that the node does not own; nothing if no subject is left."""
    if block.is_host or all(subject in own_gpus for subject in block.subjects):
        yield block
        return
    rows = [place for place, subject in enumerate(block.subjects) if subject in own_gpus]
    foreign = ", ".join(subject for subject in block.subjects if subject not in own_gpus)
    _log_once(node, foreign, f"of GPUs that are not its own ({foreign[:500]})")
    if rows:
        yield replace(
            block,
            subjects=tuple(block.subjects[place] for place in rows),
            values=_columns(block, block.values, rows),
            peaks=_columns(block, block.peaks, rows),
        )


def _columns(block: Block, matrix: bytes, rows: list[int]) -> bytes:
    row_bytes = len(block.metrics) * ITEM_BYTES
    return np.frombuffer(matrix, np.uint8).reshape(-1, len(block.subjects), row_bytes)[:, rows].tobytes()


def _log_once(node: Node, subject: str, reason: str) -> None:
    if (node.pk, subject) not in _logged and len(_logged) < 10_000:
        _logged.add((node.pk, subject))
        log.warning("Telemetry of node %s is ignored from now on: it is %s", node.name, reason)
