"""The sessions of nodes: what this process remembers of each node between its reports, by the node's token.

A session only caches data. It can be rebuilt from the database with a few queries."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from clusters.enrolment.node_tokens import node_for_token
from clusters.models import Node
from clusters.node_reports import heartbeat_writer
from clusters.node_reports.node_clock import NodeClock
from jobs.logs import log_timestamps
from jobs.node_api import node_assignments
from jobs.node_api.assignment import Key
from jobs.node_api.late_log_bytes import LateLogBytes
from jobs.node_api.node_assignments import AssignmentCache
from trainhub_launch.report import Ack, AttemptFact, Report
from workspaces import background_loop, process_caches
from workspaces.authentication.token_text import digest
from workspaces.servers.ring import ring

# A busy node reports a hundred times a second: its token is not looked up each time.
LOOKED_UP_S = 1.0
# For so long a comparison of all nodes with their rows holds, should the next one be late. A token that was
# revoked may work for so long.
CONFIRMED_S = 4.0
# A node is read again where another process has written one of these fields.
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
    "upgrade_order",
    "driver",
    "cuda",
    "nvml",
)
BATCH = 500
# Shares of the time to its next report that a node lets pass if nothing happens. A node that reports sooner
# was woken, and is answered by what the database says now. While a page watches the node, its reports follow
# the samples.
PUNCTUAL, PUNCTUAL_WATCHED = 0.97, 0.7


@dataclass(eq=False)
class NodeSession:
    """One node, as this process knows it. All reports of the node share the session and its `node` object:
    what one report changes, the next one sees."""

    node: Node
    valid_until: float = 0.0
    """Monotonic seconds until which `node` needs no comparison with its row."""
    clock: NodeClock = field(default_factory=NodeClock)
    late_logs: LateLogBytes = field(default_factory=LateLogBytes)
    assignments: AssignmentCache = field(init=False)
    accepted_facts: dict[Key, AttemptFact] = field(default_factory=dict)
    """The last fact of each attempt that this process has applied. Single dict operations need no lock."""
    claims_under_way: Counter[Key] = field(default_factory=Counter)
    """Claims that are being received or answered, by attempt; changed by the event loop alone."""
    claims_answered_at: dict[Key, datetime] = field(default_factory=dict)
    """When the last claim of each attempt was answered."""
    monotonic: Callable[[], float] = time.monotonic
    """The seconds of this process's own clock."""
    unnamed_since: dict[Key, float] = field(default_factory=dict)
    """Attempts that the node has claimed and does not name -> since when, by `monotonic`."""
    reports_under_way: int = 0
    """Reports that are being received or answered; changed by the event loop alone."""
    _last_sent_at: float = 0.0
    _next_report_after_s: float = 0.0

    def __post_init__(self) -> None:
        self.assignments = AssignmentCache(self.node.pk)

    def has_accepted(self, fact: AttemptFact) -> bool:
        """Returns whether this process has applied exactly this fact, apart from sizes of logs that still
        grow."""
        return self.accepted_facts.get((fact.run, fact.attempt)) == fact.without_growing_logs()

    def accept(self, fact: AttemptFact) -> None:
        self.accepted_facts[(fact.run, fact.attempt)] = fact.without_growing_logs()

    def forget_attempt(self, run_id: str, attempt: int) -> None:
        """Drops what is remembered of an attempt that is settled."""
        self.assignments.invalidate()
        self.late_logs.forget(run_id, attempt)
        self.accepted_facts.pop((run_id, attempt), None)
        self.claims_answered_at.pop((run_id, attempt), None)
        self.unnamed_since.pop((run_id, attempt), None)

    @contextmanager
    def claim_in_progress(self, key: Key) -> Iterator[None]:
        """Notes that the node waits for the answer to its claim, and when it was answered."""
        self.claims_under_way[key] += 1
        try:
            yield
            # Before it stops being under way, so that a report never sees a claim that is neither. A refused
            # claim is not noted: a node may name any run, and each name would stay in memory.
            self.claims_answered_at[key] = timezone.now()
        finally:
            self.claims_under_way[key] -= 1
            if not self.claims_under_way[key]:
                del self.claims_under_way[key]

    def note_named(self, named: Collection[Key]) -> None:
        """Notes which attempts a report names."""
        for key in named:
            self.unnamed_since.pop(key, None)

    def has_lost(self, key: Key, claimed_at: datetime, sent_at: datetime, patience: timedelta) -> bool:
        """Returns whether the node has nothing of an attempt that it claimed and that its report does not
        name: it must have had the answer to its claim when it sent that, at `sent_at` (by the hub's
        clock)."""
        if key in self.claims_under_way:
            self.unnamed_since.pop(key, None)
            return False
        since = self.unnamed_since.setdefault(key, self.monotonic())
        had_answer = sent_at - max(claimed_at, self.claims_answered_at.get(key, claimed_at)) > patience
        # Also by this process's own clock: another server may have answered the claim, by a wrong clock or a
        # moment ago. What is taken for lost while it starts shares its GPUs with the next attempt.
        return had_answer and self.monotonic() - since > patience.total_seconds()

    def expect_next(self, report: Report, ack: Ack) -> None:
        """Remembers when the node, having got `ack`, reports next unless it is woken."""
        if report.heartbeat is not None:
            self._last_sent_at = report.sent_at
            self._next_report_after_s = ack.interval_s * (PUNCTUAL_WATCHED if ack.is_watched else PUNCTUAL)

    def is_punctual(self, report: Report) -> bool:
        """Returns whether the report comes when it was expected, so that nothing has woken the node."""
        return report.sent_at - self._last_sent_at >= self._next_report_after_s


class NodeSessions:
    """The sessions of this process, by the SHA-256 of the node's token and by the node's id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_token: dict[str, NodeSession] = {}
        self._by_node: dict[int, NodeSession] = {}
        # Tokens of the nodes for which other servers answer, and until when that holds (monotonic seconds).
        self._elsewhere: tuple[float, frozenset[str]] = (0.0, frozenset())

    def has_token(self, token: str) -> bool:
        """Returns whether a node holds this token, as far as that is known without a query."""
        until, digests = self._elsewhere
        return self.recall(token) is not None or (time.monotonic() < until and digest(token) in digests)

    def recall(self, token: str) -> NodeSession | None:
        """Returns the session of the node that holds this token, without a query; None where one is
        needed."""
        session = self._by_token.get(digest(token))
        # Without the lock, because reading a dict entry is atomic, and a stale session is caught by
        # `valid_until`.
        return session if session is not None and time.monotonic() < session.valid_until else None

    def look_up(self, token: str) -> NodeSession | None:
        """Returns the session of the node that holds this token, from the database; None if no node does."""
        node = node_for_token(token)
        if node is None:
            with self._lock:
                session = self._by_token.get(digest(token))
                if session is not None:
                    self._remove(session)
            return None
        return self._update(_with_last_report(node), time.monotonic() + LOOKED_UP_S)

    def for_node(self, node: Node) -> NodeSession:
        """Returns the session of a node whose row was read elsewhere; the session takes over that object."""
        return self._update(node, 0.0)

    def refresh(self) -> None:
        """Compares all nodes with their rows and reads those that have changed, and reads all assignments:
        once a second, in a few queries."""
        if not background_loop.is_running():
            return
        self._refresh_nodes()
        with self._lock:
            caches = {node_id: session.assignments for node_id, session in self._by_node.items()}
        node_assignments.refresh(caches)

    def clear(self) -> None:
        with self._lock:
            self._by_token.clear()
            self._by_node.clear()

    def _refresh_nodes(self) -> None:
        started = time.monotonic()
        nodes = Node.objects.filter(revoked_at=None)
        if not ring.is_alone:
            nodes = nodes.filter(pk__in=self._own_nodes(started + CONFIRMED_S))
        rows = {row[0]: row[1:] for row in nodes.values_list("pk", *COMPARED)}
        with self._lock:
            for node_id, session in list(self._by_node.items()):
                if node_id not in rows:
                    self._remove(session)
                    # Their bytes arrive at another server from now on.
                    for key in session.assignments.last_read():
                        log_timestamps.flush_attempt(*key)
                elif rows[node_id] == tuple(getattr(session.node, name) for name in COMPARED):
                    session.valid_until = started + CONFIRMED_S
                    del rows[node_id]
        for batch in _batches(rows):
            for node in Node.objects.select_related("cluster").filter(pk__in=batch, revoked_at=None):
                self._update(_with_last_report(node), started + CONFIRMED_S)

    def _own_nodes(self, until: float) -> list[int]:
        """Returns the nodes for which this server answers, and remembers the tokens of the others."""
        digests = dict(Node.objects.filter(revoked_at=None).values_list("pk", "token_digest"))
        own = [node_id for node_id, token_digest in digests.items() if ring.owns(token_digest)]
        self._elsewhere = until, frozenset(digests.values()).difference(map(digests.get, own))
        return own

    def _update(self, node: Node, valid_until: float) -> NodeSession:
        with self._lock:
            session = self._by_node.get(node.pk)
            if session is None:
                session = self._by_node[node.pk] = NodeSession(node)
            # The token was renewed: the old one must not find the session any more.
            elif session.node.token_digest != node.token_digest:
                self._by_token.pop(session.node.token_digest, None)
            session.node, session.valid_until = node, valid_until
            self._by_token[node.token_digest] = session
            return session

    def _remove(self, session: NodeSession) -> None:
        """Removes a session. The caller holds the lock."""
        self._by_node.pop(session.node.pk, None)
        self._by_token.pop(session.node.token_digest, None)


sessions = NodeSessions()
process_caches.register(sessions.clear)


def _with_last_report(node: Node) -> Node:
    """Corrects `last_report_at` of a row that was just read, which is up to a second behind."""
    reported_at = heartbeat_writer.last_heartbeat_at(node.pk)
    if reported_at is not None and (node.last_report_at is None or node.last_report_at < reported_at):
        node.last_report_at = reported_at
    return node


def _batches(keys: Collection[int]) -> Iterable[list[int]]:
    # SQLite allows a limited number of parameters in one query.
    ordered = sorted(keys)
    return (ordered[first : first + BATCH] for first in range(0, len(ordered), BATCH))
