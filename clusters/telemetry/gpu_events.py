"""What befell GPUs, into the journal of their node: once, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from clusters import journal
from clusters.models import Gpu, Node
from trainhub_launch.gpus.xid import xid
from trainhub_launch.telemetry import GpuEvent

KINDS = {"xid": "xid", "lost": "gpu_lost", "back": "gpu_back", "ecc": "ecc"}
"""Of an event -> of the journal. That the library is lost or back, the heartbeat tells
(`clusters.node_reports.node_events`)."""
OLDEST = timedelta(days=30)
MOST_DETAIL = 1000
MOST_CODE = 2**31 - 1


def record_events(node: Node, agent: str, events: Iterable[GpuEvent], now: datetime) -> int:
    """Journal those that are new; the serial up to which all are kept."""
    events = sorted(events, key=lambda event: event.serial)
    rows = Gpu.objects.filter(pk__in={event.gpu for event in events if event.gpu}).values_list(
        "pk", "node_id", "index"
    )
    names = {uuid: f"GPU {index}" for uuid, node_id, index in rows if node_id == node.pk}
    elsewhere = {uuid for uuid, node_id, _ in rows if node_id != node.pk}
    for event in events:
        if event.kind in KINDS and event.gpu not in elsewhere:
            journal.add_once(
                node,
                KINDS[event.kind],
                _sentence(event, names.get(event.gpu, "A GPU")),
                _moment(node, event.at, now),
                key=f"{agent}:{event.serial}"[:80].replace("\0", ""),
                gpu=_clean(event.gpu, 96),
                code=event.code if 0 <= event.code <= MOST_CODE else 0,
            )
    return max((event.serial for event in events), default=0)


def _sentence(event: GpuEvent, name: str) -> str:
    detail = _clean(event.detail, MOST_DETAIL).strip().rstrip(".")
    if event.kind == "xid":
        known = xid(event.code)
        where = f" in its {detail}" if detail else ""
        return f"{name} reported XID {event.code}{where}: {known.meaning}. {known.remedy}"
    if event.kind == "lost":
        return (
            f"{name} does not answer any more{_because(detail)}. Runs on it will fail; reset it, or "
            "restart the machine."
        )
    if event.kind == "back":
        return f"{name} answers again."
    return f"{name} met memory errors{_because(detail)}."


def _because(detail: str) -> str:
    return f": {detail}" if detail else ""


def _clean(text: str, most: int) -> str:
    return text[:most].replace("\0", "\ufffd")


def _moment(node: Node, at: float, now: datetime) -> datetime:
    """By the hub's clock; never in the future, nor before anybody would look."""
    if not math.isfinite(at):
        return now
    oldest = (now - OLDEST).timestamp()
    return datetime.fromtimestamp(min(max(at + node.clock_offset_s, oldest), now.timestamp()), UTC)
