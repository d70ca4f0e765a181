"""Writes the events of GPUs into the journal of their node, once each and as a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from clusters import journal
from clusters.models import Gpu, Node
from trainhub_launch.gpus.xid import xid
from trainhub_launch.telemetry import GpuEvent

# Kind of an event -> kind of the journal entry. The loss of the whole driver library is detected from
# heartbeats (`clusters.node_reports.node_events`).
JOURNAL_KINDS = {"xid": "xid", "lost": "gpu_lost", "back": "gpu_back", "ecc": "ecc"}
MAX_AGE = timedelta(days=30)
MAX_DETAIL = 1000
MAX_CODE = 2**31 - 1


def record_gpu_events(node: Node, agent: str, events: Iterable[GpuEvent], now: datetime) -> int:
    """Journals the new events and returns the highest serial that is stored."""
    events = sorted(events, key=lambda event: event.serial)
    rows = Gpu.objects.filter(pk__in={event.gpu for event in events if event.gpu}).values_list(
        "pk", "node_id", "index"
    )
    names = {uuid: f"GPU {index}" for uuid, node_id, index in rows if node_id == node.pk}
    elsewhere = {uuid for uuid, node_id, _ in rows if node_id != node.pk}
    for event in events:
        if event.kind in JOURNAL_KINDS and event.gpu not in elsewhere:
            journal.add_once(
                node,
                JOURNAL_KINDS[event.kind],
                _sentence(event, names.get(event.gpu, "A GPU")),
                _event_time(node, event.at, now),
                # Serials begin again with each agent process, whose id makes the key unique.
                key=f"{agent}:{event.serial}"[:80].replace("\0", ""),
                gpu=_clean(event.gpu, 96),
                code=event.code if 0 <= event.code <= MAX_CODE else 0,
            )
    return max((event.serial for event in events), default=0)


def _sentence(event: GpuEvent, name: str) -> str:
    detail = _clean(event.detail, MAX_DETAIL).strip().rstrip(".")
    if event.kind == "xid":
        entry = xid(event.code)
        source = f" in its {detail}" if detail else ""
        return f"{name} reported XID {event.code}{source}: {entry.meaning}. {entry.remedy}"
    if event.kind == "lost":
        return f"{name} is lost, and runs on it fail. {detail or 'Reset it, or restart the machine'}."
    if event.kind == "back":
        return f"{name} responds again."
    return f"{name}: {detail or 'memory errors'}."


def _clean(text: str, max_length: int) -> str:
    return text[:max_length].replace("\0", "\ufffd")


def _event_time(node: Node, at: float, now: datetime) -> datetime:
    """Returns the time by the hub's clock, limited to the last MAX_AGE and never in the future."""
    if not math.isfinite(at):
        return now
    oldest = (now - MAX_AGE).timestamp()
    return datetime.fromtimestamp(min(max(at + node.clock_offset_s, oldest), now.timestamp()), UTC)
