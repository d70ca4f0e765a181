"""What a report brings of numbers over time: buckets to be stored, samples to be shown, events for the
journal."""

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
AHEAD_S = 15
"""More than a node's clock can be ahead of what the hub knows of it, by a bucket's length."""
_told: set[tuple[int, str]] = set()


def ingest(node: Node, report: Report, now: datetime) -> tuple[int, int]:
    """Take numbers and events in; what the answer confirms: `Ack.buckets_until`, of this report's buckets,
    and `Ack.events_until`. The same report again, or an older one after a newer one, changes nothing.

    Without events it asks the database nothing while rounds are going, once the node's GPUs are known
    (`gpu_rows`)."""
    until = 0
    if report.buckets or report.samples:
        own = gpu_sync.own_uuids(node)
        until = _take_buckets(
            node, [block for block in report.buckets if block.step_s == BUCKET_S], own, now.timestamp()
        )
        samples = [block for block in report.samples if block.step_s == SAMPLE_S]
        if samples:
            recent = now.timestamp() - node.clock_offset_s + AHEAD_S
            live_samples.publish_samples(
                node,
                [part for block in samples if block.start <= recent for part in _owned(node, block, own)],
            )
    return until, gpu_events.record_events(node, report.agent, report.events, now) if report.events else 0


@process_caches.register
def clear_cache() -> None:
    _told.clear()


def _take_buckets(node: Node, blocks: list[Block], own: Collection[str], now: float) -> int:
    """The end, by the node's clock, up to which every bucket of the report is stored or refused for good."""
    done, wanted = set(slice_writer.stored_starts(node.pk)), set()
    ends: dict[int, int] = {}
    for block in blocks:
        for moment in range(block.start, block.end, BUCKET_S):
            ends[moment + BUCKET_S] = start = bucket_of(moment + node.clock_offset_s)
            if (
                start not in done
                and not slice_writer.is_waiting(node.pk, start)
                and _is_in_time(node, start, now)
            ):
                wanted.add(start)
    if wanted:
        parts = [part for block in blocks for part in _owned(node, block, own)]
        slices = slice_bytes(parts, node.clock_offset_s)
        done.update(
            slice_writer.put(node.pk, {start: data for start, data in slices.items() if start in wanted})
        )
        # What is in none of them holds nothing that is the node's to tell.
        wanted.intersection_update(slices)
    until = 0
    for end in sorted(ends):
        start = ends[end]
        if (start in wanted or slice_writer.is_waiting(node.pk, start)) and start not in done:
            break
        until = end
    return until


def _is_in_time(node: Node, start: int, now: float) -> bool:
    if start > now + AHEAD_S:
        _tell_once(node, "ahead", f"{start - now:.0f} s ahead of the hub's clock")
        return False
    if start < now - retention_s()[BUCKET_S]:
        _tell_once(node, "old", "older than such are kept (TELEMETRY_KEEP_10S)")
        return False
    return True


def _owned(node: Node, block: Block, own: Collection[str]) -> Iterator[Block]:
    """The block without what the node has no right to tell."""
    if block.is_host or all(subject in own for subject in block.subjects):
        yield block
        return
    places = [place for place, subject in enumerate(block.subjects) if subject in own]
    others = ", ".join(subject for subject in block.subjects if subject not in own)
    _tell_once(node, others, f"of GPUs that are not its own ({others[:500]})")
    if places:
        yield replace(
            block,
            subjects=tuple(block.subjects[place] for place in places),
            values=_columns(block, block.values, places),
            peaks=_columns(block, block.peaks, places),
        )


def _columns(block: Block, matrix: bytes, places: list[int]) -> bytes:
    if not matrix:
        return b""
    row = len(block.metrics) * ITEM_BYTES
    return np.frombuffer(matrix, np.uint8).reshape(-1, len(block.subjects), row)[:, places].tobytes()


def _tell_once(node: Node, what: str, how: str) -> None:
    if (node.pk, what) not in _told and len(_told) < 10_000:
        _told.add((node.pk, what))
        log.warning("Numbers of node %s are left out, here and from now on: they are %s", node.name, how)
