"""Nodes whose token this process has seen: remembered, and all of them looked after in one query a round."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

from clusters import rounds, signs
from clusters.enrolment import node_of_token
from clusters.models import Node

KNOWN_S = 1.0
"""A busy node reports a hundred times a second: its token is not looked up each time."""
CONFIRMED_S = 4.0
"""For as long a look at all nodes holds, should the next one be late."""
COMPARED = (
    "token_digest", "revoked_at", "cluster_id", "agent_id", "boot_id", "hostname", "address", "agent_version", "slots",
    "clock_offset_s", "driver", "cuda", "nvml",
)
"""Where another process has written one of these, the node is read anew."""


@dataclass(frozen=True)
class _Known:
    node: Node
    until: float


_lock = threading.Lock()
_known: dict[str, _Known] = {}


def recall(token: str) -> Node | None:
    """The node, if it is known well enough now. One object for all reports of a node: what one of them changes, the next
    one sees. A token that was revoked may work a moment longer."""
    known = _known.get(token)
    return known.node if known is not None and time.monotonic() < known.until else None


def look_up(token: str) -> Node | None:
    """The same from the database."""
    node = node_of_token(token)
    with _lock:
        if node is None:
            _known.pop(token, None)
            return None
        heard_at = signs.latest(node.pk)
        if heard_at is not None and (node.last_report_at is None or node.last_report_at < heard_at):
            # Its row is a second behind.
            node.last_report_at = heard_at
        _known[token] = _Known(node, time.monotonic() + KNOWN_S)
    return node


def look() -> None:
    """A round: confirm all who are known and unchanged."""
    begun = time.monotonic()
    with _lock:
        known = dict(_known)
    if not known:
        return
    rows = {row[0]: row[1:] for row in Node.objects.values_list("pk", *COMPARED)}
    for token, one in known.items():
        as_known = tuple(getattr(one.node, name) for name in COMPARED)
        is_same = rows.get(one.node.pk) == as_known
        with _lock:
            if _known.get(token) is one:
                if is_same and rounds.are_going():
                    _known[token] = replace(one, until=begun + CONFIRMED_S)
                elif not is_same:
                    del _known[token]


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    with _lock:
        _known.clear()
