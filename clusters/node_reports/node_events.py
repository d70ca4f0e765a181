"""Detects events for the journal of a node from the changes that a report makes, without a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from clusters.models import Node
from clusters.node_reports import node_clock
from clusters.node_reports.inventory import Vitals
from trainhub_launch.machine import Heartbeat

BACK = "back"
GIB = 1024**3
LOW_DISK_BYTES = 2 * GIB
# More than LOW_DISK_BYTES, so that a disk that stays at the limit is journaled once and not at every report.
SUFFICIENT_DISK_BYTES = 3 * GIB


def detect(
    node: Node,
    beat: Heartbeat | None,
    changed: Mapping[str, object],
    *,
    silence_s: float,
    clock_moved_s: float,
) -> Iterator[tuple[str, str]]:
    """Yields kind and sentence of each event. `node` has its old values except for its clock. Low disk space
    is marked in the new vitals, so that it is journaled once."""
    if beat is not None and node.last_report_at is None:
        yield "heard", f"Reported for the first time: {beat.hostname} at {beat.address}."
    if silence_s:
        yield BACK, return_sentence(silence_s)
    if node.boot_id and "boot_id" in changed:
        yield "restarted", "The machine was restarted."
    # A restarted machine always has a new agent process, too; one entry is enough.
    elif node.agent_id and "agent_id" in changed:
        yield "agent", "Its agent was restarted."
    if node.hostname and "hostname" in changed:
        yield "renamed", f"The host name is now {changed['hostname']}; it was {node.hostname}."
    previous_offset_s = node.clock_offset_s - clock_moved_s
    if clock_moved_s and max(abs(previous_offset_s), abs(node.clock_offset_s)) > node_clock.NOTICED_S:
        yield "clock", node_clock.offset_sentence(node.clock_offset_s)
    if node.driver and changed.get("driver"):
        yield "driver", f"The NVIDIA driver is now {changed['driver']}; it was {node.driver}."
    if "nvml" in changed:
        yield _nvml(str(changed["nvml"]))
    if beat is not None:
        yield from _disk(node, beat, cast("Vitals", changed["vitals"]))


def return_sentence(silence_s: float) -> str:
    return f"Reports again, after {silence_s:.0f} s of silence."


def disk_sentence(free_bytes: int) -> str:
    return (
        f"Only {free_bytes / GIB:.1f} GiB are free where it stores runs; logs and outputs may be "
        "truncated. Free disk space there."
    )


def _nvml(error: str) -> tuple[str, str]:
    if not error:
        return "nvml_back", "Its GPUs can be read again."
    return "nvml_lost", f"Its GPUs cannot be read: {error.rstrip('.')}."


def _disk(node: Node, beat: Heartbeat, vitals: Vitals) -> Iterator[tuple[str, str]]:
    was_low = bool(node.vitals.get("disk_low"))
    if beat.disk_free_bytes >= (SUFFICIENT_DISK_BYTES if was_low else LOW_DISK_BYTES):
        return
    vitals["disk_low"] = True
    if not was_low:
        yield "disk", disk_sentence(beat.disk_free_bytes)
