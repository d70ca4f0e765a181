"""Nodes by their tokens, as this process knows them: all read in a few queries, and compared with their rows
once a round.

There is one object for all reports of a node: what one report changes, the next one sees.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from clusters.enrolment.node_tokens import node_of_token
from clusters.models import Node
from clusters.node_reports import heartbeat_writer
from workspaces import background_loop
from workspaces.tokens import digest

KNOWN_S = 1.0
"""A busy node reports a hundred times a second: its token is not looked up each time."""
CONFIRMED_S = 4.0
"""For as long a round's look at all nodes holds, should the next one be late. A token that was revoked may
work so long."""
COMPARED = (
    "token_digest",
    "revoked_at",
    "cluster_id",
    "agent_id",
    "boot_id",
    "hostname",
    "address",
    "agent_version",
    "slots",
    "clock_offset_s",
    "driver",
    "cuda",
    "nvml",
)
"""Where another process has written one of these, the node is read anew."""
BATCH = 500


@dataclass
class _Known:
    node: Node
    until: float


_lock = threading.Lock()
_known: dict[str, _Known] = {}


def recall(token: str) -> Node | None:
    """The node that holds this token, if it is known well enough now."""
    known = _known.get(digest(token))
    return known.node if known is not None and time.monotonic() < known.until else None


def look_up(token: str) -> Node | None:
    """The same from the database."""
    node = node_of_token(token)
    if node is None:
        with _lock:
            _known.pop(digest(token), None)
        return None
    _remember([node], time.monotonic() + KNOWN_S)
    return node


def look() -> None:
    """A round: confirm who is unchanged, and read the others."""
    if not background_loop.is_running():
        return
    begun = time.monotonic()
    rows = {row[0]: row[1:] for row in Node.objects.filter(revoked_at=None).values_list("pk", *COMPARED)}
    with _lock:
        for key, known in list(_known.items()):
            if rows.get(known.node.pk) == tuple(getattr(known.node, name) for name in COMPARED):
                known.until = begun + CONFIRMED_S
                del rows[known.node.pk]
            else:
                del _known[key]
    for batch in _batches(rows):
        _remember(
            Node.objects.select_related("cluster").filter(pk__in=batch, revoked_at=None), begun + CONFIRMED_S
        )


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    with _lock:
        _known.clear()


def _remember(nodes: Iterable[Node], until: float) -> None:
    for node in nodes:
        heard_at = heartbeat_writer.latest(node.pk)
        if heard_at is not None and (node.last_report_at is None or node.last_report_at < heard_at):
            # Its row is a second behind.
            node.last_report_at = heard_at
        with _lock:
            _known[node.token_digest] = _Known(node, until)


def _batches(keys: Collection[int]) -> Iterable[list[int]]:
    ordered = sorted(keys)
    return (ordered[first : first + BATCH] for first in range(0, len(ordered), BATCH))
