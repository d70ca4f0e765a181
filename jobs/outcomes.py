"""What the facts of an attempt's nodes mean for its run: pure, in a written order of priority."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.states import MemberState, Reason, RunState
from trainhub_launch.report import PHASES, AttemptFact, MemberFact

_PHASES = ("", *PHASES)
_ERRORS = {
    "environment": Reason.ENVIRONMENT_FAILED,
    "snapshot": Reason.SNAPSHOT_FAILED,
    "launch": Reason.LAUNCH_FAILED,
    "upload": Reason.UPLOAD_FAILED,
}


@dataclass(frozen=True)
class Part:
    """One node's part: the last fact it told (None: it has told none), and whether each of its ranks decides."""

    node: str
    node_rank: int
    fact: AttemptFact | None
    decides: Mapping[int, bool]

    @property
    def phase(self) -> str:
        return self.fact.phase if self.fact else ""


@dataclass(frozen=True)
class Verdict:
    """`state` the run should have reached by now; with a reason, the attempt is decided.

    `failing`: the attempt cannot succeed any more, though some node is not done; the others are to stop.
    """

    state: RunState
    reason: Reason = Reason.NONE
    facts: Mapping[str, Any] = field(default_factory=dict)
    failing: bool = False


def derive(parts: Sequence[Part], *, canceled_by: str | None = None, timeout_s: int | None = None) -> Verdict:
    """The run's state from its parts; `canceled_by` is set once somebody has asked for the end.

    1. A cancel that was asked for wins over whatever its stop signals made of the ranks.
    2. The time limit.
    3. A node that could not prepare or start its part, the first node in rank order.
    4. The first rank, by true end time, that failed and was not ended by us.
    5. A deciding rank that did not succeed although nobody failed (ended as an orphan, never started).
    6. Outputs that could not be saved.
    7. Success: every deciding rank succeeded; parameter servers and their like, ended by us, count as success.
    """
    reason, facts = _decided(parts, canceled_by, timeout_s)
    if all(part.phase == "done" for part in parts):
        return Verdict(reason.final_state, reason, facts)
    failing = reason not in (Reason.COMPLETED, Reason.CANCELED)
    return Verdict(_state(parts), failing=failing and _is_over(parts))


def member_state(fact: MemberFact) -> MemberState:
    """What the page calls this rank."""
    if fact.state == "waiting":
        return MemberState.WAITING
    if fact.state == "running":
        return MemberState.RUNNING
    if fact.exit_code == 0 and fact.signal is None:
        return MemberState.SUCCEEDED
    return MemberState.STOPPED if fact.ended_by_us else MemberState.FAILED


def _state(parts: Sequence[Part]) -> RunState:
    """Where a run is that goes on: Running as soon as one node runs, Finalizing once all have ended."""
    order = [_PHASES.index(part.phase) for part in parts]
    if min(order) >= _PHASES.index("uploading"):
        return RunState.FINALIZING
    return RunState.RUNNING if max(order) >= _PHASES.index("running") else RunState.PREPARING


def _is_over(parts: Sequence[Part]) -> bool:
    """A failure is only read out of what has been told: a part that has not ended has not failed."""
    return any(part.fact and (part.fact.error or _failed([part])) for part in parts)


def _decided(parts: Sequence[Part], canceled_by: str | None, timeout_s: int | None) -> tuple[Reason, dict[str, Any]]:
    if canceled_by is not None:
        return Reason.CANCELED, {"who": canceled_by}
    told = sorted((part for part in parts if part.fact), key=lambda part: part.node_rank)
    stopping = {part.fact.stopping: part for part in told if part.fact}
    if "timeout" in stopping:
        return Reason.TIMED_OUT, {"seconds": timeout_s}
    broken = [part for part in told if part.fact and part.fact.error]
    for part in broken:
        if part.fact and part.fact.error_kind != "upload":
            return _error(part.node, part.fact)
    failed = _failed(told)
    if failed:
        return _death(*failed[0])
    return _undecided(told, stopping) or _saved(broken)


def _failed(parts: Sequence[Part]) -> list[tuple[Part, MemberFact]]:
    """The ranks that failed by themselves, the first to end first; rank order where the clock does not tell."""
    found = [
        (part, member) for part in parts if part.fact
        for member in part.fact.members if member_state(member) is MemberState.FAILED
    ]
    return sorted(found, key=lambda item: (item[1].ended_at or float("inf"), item[1].rank))


def _death(part: Part, member: MemberFact) -> tuple[Reason, dict[str, Any]]:
    facts: dict[str, Any] = {"rank": member.rank, "node": part.node}
    if member.out_of_memory:
        return Reason.OUT_OF_MEMORY, facts
    if member.signal is not None:
        return Reason.SIGNALED, facts | {"signal": _signal_name(member.signal)}
    return Reason.EXITED, facts | {"code": member.exit_code}


def _undecided(parts: Sequence[Part], stopping: Mapping[str, Part]) -> tuple[Reason, dict[str, Any]] | None:
    for part in parts:
        ended = {member.rank: member_state(member) for member in part.fact.members} if part.fact else {}
        for rank, decides in sorted(part.decides.items()):
            if not decides or ended.get(rank) is MemberState.SUCCEEDED:
                continue
            if "canceled" in stopping:
                return Reason.CANCELED, {"who": f"node {stopping['canceled'].node}"}
            if "orphan" in stopping:
                return Reason.ORPHANED, {"node": stopping["orphan"].node}
            return Reason.LAUNCH_FAILED, {"node": part.node, "detail": f"rank {rank} has left no word of its end"}
    return None


def _saved(broken: Sequence[Part]) -> tuple[Reason, dict[str, Any]]:
    for part in broken:
        if part.fact:
            return _error(part.node, part.fact)
    return Reason.COMPLETED, {}


def _error(node: str, fact: AttemptFact) -> tuple[Reason, dict[str, Any]]:
    return _ERRORS.get(fact.error_kind, Reason.NODE_ERROR), {"node": node, "detail": fact.error}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
