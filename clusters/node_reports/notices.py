"""Notices about a reporting node for its page, such as a wrong clock or an outdated agent."""

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
    """A notice on a node's page. `tone` and `icon` are names of the component library."""

    tone: str
    icon: str
    sentence: str


def notices(node: Node, slots_free: int) -> tuple[Notice, ...]:
    candidates = [_clock(node), _disk(node), _slots(node, slots_free), _version(node)]
    return tuple(notice for notice in candidates if notice is not None)


@cache
def agent_version() -> str:
    """Returns the version of the agent package that this hub provides."""
    # Read as text, because the hub imports nothing from the package of the nodes.
    match = VERSION.search((Path(settings.BASE_DIR) / "trainhub_node" / "__init__.py").read_text())
    return match[1] if match else ""


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
    usage = (
        "Its only process slot is taken" if node.slots == 1 else f"All {node.slots} process slots are taken"
    )
    return Notice("waiting", "queue-list", f"{usage}; more runs without GPUs have to wait.")


def has_other_agent(node: Node) -> bool:
    """Returns whether the node's agent is of another version than the one that this hub provides."""
    return bool(node.agent_version) and node.agent_version != agent_version()


def _version(node: Node) -> Notice | None:
    hub_version = agent_version()
    if not has_other_agent(node):
        return None
    return Notice(
        "waiting",
        "arrow-up-circle",
        f"Its agent is version {node.agent_version}, the hub's is {hub_version}. Its runs go on, and "
        "operators can upgrade it.",
    )
