"""What people should know of a node that reports, beside its numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings

from clusters.models import Node
from clusters.node_reports import node_clock, node_events

VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Notice:
    """`tone` and `icon` as in the components."""

    tone: str
    icon: str
    sentence: str


def notices(node: Node, slots_free: int) -> tuple[Notice, ...]:
    found = [_clock(node), _disk(node), _slots(node, slots_free), _version(node)]
    return tuple(notice for notice in found if notice is not None)


@cache
def agent_version() -> str:
    """Of the agent that this hub hands out."""
    found = VERSION.search((Path(settings.BASE_DIR) / "trainhub_node" / "__init__.py").read_text())
    return found[1] if found else ""


def _clock(node: Node) -> Notice | None:
    if abs(node.clock_offset_s) <= node_clock.NOTICED_S:
        return None
    return Notice("preparing", "clock", node_clock.offset_sentence(node.clock_offset_s))


def _disk(node: Node) -> Notice | None:
    if not node.vitals.get("disk_low"):
        return None
    return Notice("failed", "circle-stack", node_events.disk_sentence(node.vitals.get("disk_free_bytes", 0)))


def _slots(node: Node, free: int) -> Notice | None:
    if free or not node.slots:
        return None
    taken = (
        "Its only process slot is taken" if node.slots == 1 else f"All {node.slots} process slots are taken"
    )
    return Notice("waiting", "queue-list", f"{taken}; further runs without GPUs wait.")


def _version(node: Node) -> Notice | None:
    ours = agent_version()
    if not node.agent_version or node.agent_version == ours:
        return None
    remedy = "install the hub's package there again and restart the agent; runs that run go on"
    return Notice(
        "waiting",
        "arrow-up-circle",
        f"Its agent is version {node.agent_version}, the hub's is {ours}: {remedy}.",
    )
