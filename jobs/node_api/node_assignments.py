"""What a node holds or should hold: its parts that are not settled, and what follows from each for the answer
to a report."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from jobs.models import AttemptNode, Member
from jobs.states import RunState
from trainhub_launch.report import READY, StopOrder

Key = tuple[str, int]
REMEMBERED_S = 0.2
"""How long a busy node's reports are judged by what was read before: a flood of log bytes costs no query
each."""
LOOK_HOLDS_S = 4.0
"""The same of a look at all nodes, for a node that reports when it was expected to: one that has been woken
reports sooner."""
_OF_A_NODE = re.compile(r"node_\d+/")


@dataclass(frozen=True)
class Holding:
    """One unsettled part of a node."""

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

    @property
    def key(self) -> Key:
        return self.run, self.attempt

    @property
    def over(self) -> bool:
        """Whatever the node still runs of it, nobody waits for any more."""
        return self.ended or self.run_attempt != self.attempt

    @property
    def to_start(self) -> bool:
        """Whether the node is to ask: for its part, or, once all nodes are ready, for the final order."""
        if self.over or self.failing or self.served:
            return False
        if self.claimed_at is None:
            return self.run_state in (RunState.PROVISIONING, RunState.PREPARING)
        return self._may_go

    @property
    def daemon_wanted(self) -> bool:
        return bool(self.daemon) and not (self.over or self.failing or self.served) and self._may_go

    @property
    def _may_go(self) -> bool:
        return (
            self.phase == READY and self.planned and self.run_state in (RunState.PREPARING, RunState.RUNNING)
        )

    def stop(self) -> StopOrder | None:
        if self.phase == "done":
            return None
        why = ""
        if self.run_state is RunState.CANCEL_REQUESTED and not self.over:
            why = "canceled"
        elif self.over:
            why = "orphan"
        elif self.failing:
            why = "gang"
        elif self.served:
            why = "served"
        return StopOrder(self.run, self.attempt, self.grace_s, why) if why else None

    def stored_name(self, name: str) -> str | None:
        """Under which name a log of this node is kept; None where the name belongs to another node's rank.

        The head's names are kept as they are, but for those below `node_<rank>/`, which are other nodes'.
        Other nodes have a build log and a preparation log too."""
        if name in self.own_logs:
            return name
        if name.startswith("70_driver_log") or (self.node_rank == 0 and _OF_A_NODE.match(name)):
            return None
        return name if self.node_rank == 0 else f"node_{self.node_rank}/{name}"


_lock = threading.Lock()
_known: dict[int, tuple[float, dict[Key, Holding]]] = {}
_looked: tuple[float, dict[int, dict[Key, Holding]]] = (float("-inf"), {})
_forgotten: dict[int, float] = {}


def of(node_id: int, *, fresh: bool) -> dict[Key, Holding]:
    """The node's unsettled parts; `fresh` reads them now, else what was read a moment ago will do."""
    now = time.monotonic()
    with _lock:
        read_at, known = _known.get(node_id, (0.0, {}))
    if not fresh and now - read_at < REMEMBERED_S:
        return known
    found = _by_node(AttemptNode.objects.filter(node_id=node_id), {node_id: known}).get(node_id, {})
    with _lock:
        _known[node_id] = (now, found)
    return found


def of_late(node_id: int) -> dict[Key, Holding] | None:
    """The same as it was within the last seconds, without asking; None where this process does not know."""
    with _lock:
        looked_at, all_of_them = _looked
        read_at, known = _known.get(node_id, (0.0, {}))
        since = max(read_at, looked_at)
        if time.monotonic() - since > LOOK_HOLDS_S or _forgotten.get(node_id, 0.0) >= since:
            return None
        return known if read_at >= looked_at else all_of_them.get(node_id, {})


def look() -> None:
    """A round: what all nodes hold, in one query."""
    global _looked  # noqa: PLW0603 - guarded by the lock
    now = time.monotonic()
    with _lock:
        known = {**_looked[1], **{node_id: held for node_id, (_, held) in _known.items()}}
    found = _by_node(AttemptNode.objects.all(), known)
    with _lock:
        _looked = (now, found)
        for gone in [node_id for node_id, at in _forgotten.items() if at < now]:
            del _forgotten[gone]


def forget(node_id: int) -> None:
    """What was read of this node is no longer so."""
    with _lock:
        _known.pop(node_id, None)
        _forgotten[node_id] = time.monotonic()


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    global _looked  # noqa: PLW0603 - guarded by the lock
    with _lock:
        _known.clear()
        _forgotten.clear()
        _looked = (float("-inf"), {})


def _by_node(
    parts: QuerySet[AttemptNode], known: Mapping[int, dict[Key, Holding]]
) -> dict[int, dict[Key, Holding]]:
    unsettled = (
        parts.filter(settled_at=None)
        .select_related("attempt__run")
        # A plan of many ranks is long, and read at every report of a busy node.
        .defer("attempt__plan", "attempt__run__preview")
        .annotate(planned=ExpressionWrapper(Q(attempt__plan__isnull=False), BooleanField()))
    )
    found: dict[int, dict[Key, Holding]] = {}
    for part in unsettled:
        holding = _holding(part, part.planned, known.get(part.node_id, {}))
        found.setdefault(part.node_id, {})[holding.key] = holding
    return found


def _holding(part: AttemptNode, planned: bool, known: dict[Key, Holding]) -> Holding:
    attempt, run = part.attempt, part.attempt.run
    before = known.get((run.pk, attempt.number))
    return Holding(
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
    )


def _own_logs(part: AttemptNode) -> frozenset[str]:
    members = Member.objects.filter(attempt_id=part.attempt_id, node_id=part.node_id)
    return frozenset(members.values_list("log_name", flat=True))
