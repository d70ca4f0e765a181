"""The assignments of a node: its parts of attempts that are not settled, and what each means for the answer
to a report."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from jobs.models import AttemptNode, Member
from jobs.states import RunState
from trainhub_launch.log_names import DRIVER_LOG
from trainhub_launch.report import StopOrder
from trainhub_launch.states import Phase, StopReason

Key = tuple[str, int]
# For so long the reports of a busy node share one query: a flood of log bytes does not cost a query each.
REUSED_S = 0.2
# For so long what was read serves a node that reports when it was expected to. A node that was woken reports
# sooner, and its assignments are read again.
RECENT_S = 4.0
_OF_A_NODE = re.compile(r"node_\d+/")


@dataclass(frozen=True)
class Assignment:
    """One unsettled part that a node has, or should have, of an attempt."""

    part_id: int
    run: str
    attempt: int
    run_state: RunState
    run_attempt: int
    ended: bool
    failing: bool
    claimed_at: datetime | None
    node_rank: int
    phase: str
    grace_s: int
    workspace_id: int
    own_logs: frozenset[str]
    planned: bool
    served: bool
    daemon: tuple[str, ...]
    preempted: bool = False

    @property
    def key(self) -> Key:
        return self.run, self.attempt

    @property
    def over(self) -> bool:
        """Returns whether the attempt needs nothing more from this part, whatever the node still runs of
        it."""
        return self.ended or self.run_attempt != self.attempt

    @property
    def to_start(self) -> bool:
        """Returns whether the node must claim: its part first, and the final order once all nodes are
        ready."""
        if self.over or self.failing or self.served or self.preempted:
            return False
        if self.claimed_at is None:
            return self.run_state in (RunState.PROVISIONING, RunState.PREPARING)
        return self._may_start

    @property
    def needs_daemon(self) -> bool:
        return bool(self.daemon) and not (self.over or self.failing or self.served) and self._may_start

    @property
    def _may_start(self) -> bool:
        return (
            self.phase == Phase.READY
            and self.planned
            and self.run_state in (RunState.PREPARING, RunState.RUNNING)
        )

    def stop(self) -> StopOrder | None:
        if self.phase == Phase.DONE:
            return None
        why = None
        if self.run_state is RunState.CANCEL_REQUESTED and not self.over:
            why = StopReason.CANCELED
        elif self.preempted and not self.over:
            # A node of an earlier version stops the run, too, but does not write the file that announces it.
            why = StopReason.PREEMPTED
        elif self.over:
            why = StopReason.ORPHAN
        elif self.failing:
            why = StopReason.GANG
        elif self.served:
            why = StopReason.SERVED
        return StopOrder(self.run, self.attempt, self.grace_s, why) if why else None

    def stored_name(self, name: str) -> str | None:
        """Returns the name under which the hub stores a log of this node, or None if the name belongs to a
        rank of another node.

        Names of the head node stay as they are, except those below `node_<rank>/`, which belong to the other
        nodes. Other nodes have a build log and a preparation log, too."""
        if name in self.own_logs:
            return name
        if name.startswith(DRIVER_LOG) or (self.node_rank == 0 and _OF_A_NODE.match(name)):
            return None
        return name if self.node_rank == 0 else f"node_{self.node_rank}/{name}"


class AssignmentCache:
    """The unsettled assignments of one node, as this process read them last."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._outdated_at = float("-inf")
        self._by_key: dict[Key, Assignment] = {}

    def read(self, *, fresh: bool) -> dict[Key, Assignment]:
        """Returns the node's unsettled assignments. Queries the database if `fresh`, or if the last query is
        longer ago than REUSED_S."""
        now = time.monotonic()
        with self._lock:
            previous, read_at, outdated_at = self._by_key, self._read_at, self._outdated_at
        # Newer than the last change that this process knows of; changes by other processes are seen after
        # REUSED_S at the latest.
        if not fresh and now - read_at < REUSED_S and read_at > outdated_at:
            return previous
        parts = AttemptNode.objects.filter(node_id=self._node_id)
        self.update(now, _read(parts, {self._node_id: previous}).get(self._node_id, {}))
        return self._by_key

    def recent(self) -> dict[Key, Assignment] | None:
        """Returns the assignments as they were within the last seconds, without a query; None if unknown."""
        with self._lock:
            is_recent = time.monotonic() - self._read_at <= RECENT_S and self._read_at > self._outdated_at
            return self._by_key if is_recent else None

    def last_read(self) -> dict[Key, Assignment]:
        """Returns what was read last, however long ago."""
        return self._by_key

    def update(self, read_at: float, by_key: dict[Key, Assignment]) -> None:
        """Takes the result of a query that began at `read_at` (monotonic seconds), unless a newer one is
        known."""
        with self._lock:
            # Queries may end in another order than they began.
            if read_at >= self._read_at:
                self._read_at, self._by_key = read_at, by_key

    def invalidate(self) -> None:
        """The assignments have changed: what has been read so far, or is being read now, is outdated."""
        with self._lock:
            self._outdated_at = time.monotonic()


def refresh(caches: Mapping[int, AssignmentCache]) -> None:
    """Reads the assignments of all nodes in one query into `caches` (node id -> cache)."""
    now = time.monotonic()
    previous = {node_id: cache.last_read() for node_id, cache in caches.items()}
    by_node = _read(AttemptNode.objects.all(), previous, only=previous.keys())
    for node_id, cache in caches.items():
        cache.update(now, by_node.get(node_id, {}))


def _read(
    parts: QuerySet[AttemptNode],
    previous: Mapping[int, dict[Key, Assignment]],
    only: Collection[int] | None = None,
) -> dict[int, dict[Key, Assignment]]:
    """Returns node id -> key -> assignment. `previous` is read before, whose log names still hold."""
    unsettled = (
        parts.filter(settled_at=None)
        .select_related("attempt__run")
        # A plan of many ranks is long, and this is read at every report of a busy node.
        .defer("attempt__plan", "attempt__run__preview")
        .annotate(planned=ExpressionWrapper(Q(attempt__plan__isnull=False), BooleanField()))
    )
    by_node: dict[int, dict[Key, Assignment]] = {}
    for part in unsettled:
        if only is None or part.node_id in only:
            assignment = _assignment(part, part.planned, previous.get(part.node_id, {}))
            by_node.setdefault(part.node_id, {})[assignment.key] = assignment
    return by_node


def _assignment(part: AttemptNode, planned: bool, previous: dict[Key, Assignment]) -> Assignment:
    attempt, run = part.attempt, part.attempt.run
    before = previous.get((run.pk, attempt.number))
    return Assignment(
        part_id=part.pk,
        run=run.pk,
        attempt=attempt.number,
        run_state=RunState(run.state),
        run_attempt=run.attempt,
        ended=attempt.ended_at is not None,
        failing=attempt.failing,
        claimed_at=part.claimed_at,
        node_rank=part.node_rank,
        phase=part.phase,
        grace_s=int(run.spec["limits"]["grace_s"]),
        workspace_id=run.workspace_id,
        own_logs=before.own_logs if before and before.planned == planned else _own_logs(part),
        planned=planned,
        served=attempt.served,
        daemon=tuple(part.daemon),
        preempted=bool(attempt.preempted_by),
    )


def _own_logs(part: AttemptNode) -> frozenset[str]:
    members = Member.objects.filter(attempt_id=part.attempt_id, node_id=part.node_id)
    return frozenset(members.values_list("log_name", flat=True))
