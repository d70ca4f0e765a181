"""Derives the state of a run from the reports of its nodes, by fixed rules of priority. Pure functions."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobs.states import MemberState, Reason, RunState
from trainhub_launch.json_types import JsonObject, JsonValue
from trainhub_launch.report import AttemptFact, MemberFact
from trainhub_launch.states import PHASES, ErrorKind, Phase, RankState, StopReason

# The place in this list is the order in which a node passes through them; "" is before its first report.
_PHASES = ("", *PHASES)
_SUCCEEDED = MemberState.SUCCEEDED
_ERRORS: dict[str, Reason] = {
    ErrorKind.ENVIRONMENT: Reason.ENVIRONMENT_FAILED,
    ErrorKind.SNAPSHOT: Reason.SNAPSHOT_FAILED,
    ErrorKind.DATA: Reason.DATA_FAILED,
    ErrorKind.LAUNCH: Reason.LAUNCH_FAILED,
    ErrorKind.UPLOAD: Reason.UPLOAD_FAILED,
    ErrorKind.DISK_LIMIT: Reason.DISK_LIMIT,
    ErrorKind.DISK_FULL: Reason.DISK_FULL,
}


@dataclass(frozen=True)
class NodePart:
    """One node's part of an attempt: its last report (None before the first), and for each of its ranks
    whether its exit decides the run."""

    node: str
    node_rank: int
    fact: AttemptFact | None
    decides: Mapping[int, bool]

    @property
    def phase(self) -> str:
        return self.fact.phase if self.fact else ""


@dataclass(frozen=True)
class RunVerdict:
    """`state`: the state that the run should have reached. A `reason` means that the attempt has ended.

    `failing`: the attempt cannot succeed any more, but some nodes are not done; they have to stop.
    `served`: the attempt has succeeded, but some nodes are not done; ranks that only serve have to stop.
    """

    state: RunState
    reason: Reason = Reason.NONE
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    failing: bool = False
    served: bool = False


class RankEnd(Protocol):
    """How a rank ended, as its node reported it."""

    @property
    def rank(self) -> int: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def signal(self) -> int | None: ...
    @property
    def out_of_memory(self) -> bool: ...


@dataclass(frozen=True)
class Failure:
    """The reason why an attempt failed. `at`: Unix seconds, or None if unknown."""

    reason: Reason
    facts: JsonObject
    at: float | None


def derive(
    parts: Sequence[NodePart],
    *,
    canceled_by: str | None = None,
    timeout_s: int | None = None,
    preempted_by: str = "",
) -> RunVerdict:
    """Returns the state that the run should be in. `canceled_by`: the user who requested a cancel, or None.
    `preempted_by`: the run for which this one has to stop, or "".

    The first rule that applies gives the reason:

    1. A cancel request: it explains every rank that its stop signals ended. Or a preemption, once a node has
       sent those signals; a run whose ranks ended before is over.
    2. The time limit.
    3. A node that could not prepare or start its part, or ended it because of its use of the disk; the first
       one in rank order.
    4. The first rank, by end time, that failed and was not stopped by the node. Ranks that do not decide the
       run count only while some deciding rank has not succeeded.
    5. A deciding rank that did not succeed although no rank failed (ended as an orphan or from outside,
       never started).
    6. Outputs that could not be saved.
    7. Success: every deciding rank succeeded. Ranks that only serve, such as parameter servers, count as
       successful when the node stops them."""
    reason, facts = _final_reason(parts, canceled_by, timeout_s)
    if canceled_by is None and preempted_by and _is_stopped(parts):
        reason, facts = Reason.PREEMPTED_BY_RUN, {"who": preempted_by}
    # Even a decided attempt is not over before the last node is done: its processes still hold GPUs.
    if all(part.phase == Phase.DONE for part in parts):
        return RunVerdict(reason.final_state, reason, facts)
    if _have_succeeded(parts):
        return RunVerdict(_state(parts), served=True)
    failing = reason is not Reason.COMPLETED and canceled_by is None
    return RunVerdict(_state(parts), failing=failing and _is_over(parts))


def first_failure(parts: Sequence[NodePart], timeout_s: int | None) -> Failure | None:
    """Returns the first failure so far, or None. Applies rules 2 to 4 of `derive`."""
    with_report = sorted((part for part in parts if part.fact), key=lambda part: part.node_rank)
    for part in with_report:
        # The child of each node stops its ranks at the time limit by itself, also without the hub.
        if part.fact and part.fact.stopping == StopReason.TIMEOUT:
            if timeout_s is None:
                return Failure(Reason.LIMIT_OUTSIDE, {}, None)
            return Failure(Reason.TIMED_OUT, {"seconds": timeout_s}, None)
    for part in with_report:
        if part.fact and part.fact.error and part.fact.error_kind != ErrorKind.UPLOAD:
            return Failure(*_error(part.node, part.fact), max(part.fact.phase_at.values(), default=None))
    failed = [] if _have_succeeded(parts) else _failed_members(with_report)
    if not failed:
        return None
    part, member = failed[0]
    return Failure(*rank_failure(member, part.node), member.ended_at)


def rank_failure(end: RankEnd, node: str) -> tuple[Reason, JsonObject]:
    """Returns the run's reason for a failed rank on that node, and the facts that fill its sentence."""
    facts: JsonObject = {"rank": end.rank, "node": node}
    if end.out_of_memory:
        return Reason.OUT_OF_MEMORY, facts
    if end.signal is not None:
        return Reason.SIGNALED, facts | {"signal": signal_name(end.signal)}
    return Reason.EXITED, facts | {"code": end.exit_code}


def member_state(fact: MemberFact) -> MemberState:
    """Returns the state of this rank as the hub stores it."""
    if fact.state is RankState.WAITING:
        return MemberState.WAITING
    if fact.state is RankState.RUNNING:
        return MemberState.RUNNING
    if fact.exit_code == 0 and fact.signal is None:
        return MemberState.SUCCEEDED
    return MemberState.STOPPED if fact.ended_by_us else MemberState.FAILED


def _state(parts: Sequence[NodePart]) -> RunState:
    """Returns the state of a run in progress: Running once one node runs, Finalizing once all have ended."""
    order = [_PHASES.index(part.phase) for part in parts]
    if min(order) >= _PHASES.index(Phase.UPLOADING):
        return RunState.FINALIZING
    return RunState.RUNNING if max(order) >= _PHASES.index(Phase.RUNNING) else RunState.PREPARING


def _is_over(parts: Sequence[NodePart]) -> bool:
    """Returns whether a reported failure ends the attempt. A part that has not ended has not failed."""
    for part in parts:
        if part.fact and (part.fact.error or _failed_members([part])):
            return True
        ended = _member_states(part)
        if part.phase == Phase.DONE and any(
            decides and ended.get(rank) is not _SUCCEEDED for rank, decides in part.decides.items()
        ):
            return True
    return False


def _is_stopped(parts: Sequence[NodePart]) -> bool:
    """Returns whether a node has stopped its ranks because the hub told it so."""
    # A hub of the version before gave the reason CANCELED for a preemption, too.
    reasons = (StopReason.PREEMPTED, StopReason.CANCELED)
    return any(part.fact is not None and part.fact.stopping in reasons for part in parts)


def _have_succeeded(parts: Sequence[NodePart]) -> bool:
    """Returns whether all deciding ranks have succeeded and there are other ranks that still have to stop."""
    deciding = [
        _member_states(part).get(rank) is _SUCCEEDED
        for part in parts
        for rank, decides in part.decides.items()
        if decides
    ]
    return all(deciding) and 0 < len(deciding) < sum(len(part.decides) for part in parts)


def _member_states(part: NodePart) -> dict[int, MemberState]:
    return {member.rank: member_state(member) for member in part.fact.members} if part.fact else {}


def _final_reason(
    parts: Sequence[NodePart], canceled_by: str | None, timeout_s: int | None
) -> tuple[Reason, JsonObject]:
    if canceled_by is not None:
        return Reason.CANCELED, {"who": canceled_by}
    failure = first_failure(parts, timeout_s)
    if failure:
        return failure.reason, failure.facts
    with_report = sorted((part for part in parts if part.fact), key=lambda part: part.node_rank)
    return _missing_end(with_report) or _upload_result(with_report)


def _failed_members(parts: Sequence[NodePart]) -> list[tuple[NodePart, MemberFact]]:
    """Returns the ranks that failed by themselves, by end time and then by rank."""
    members = [
        (part, member)
        for part in parts
        if part.fact
        for member in part.fact.members
        if member_state(member) is MemberState.FAILED
    ]
    # A rank without a known end sorts last: nothing can be said about its time.
    return sorted(members, key=lambda item: (item[1].ended_at or float("inf"), item[1].rank))


def _missing_end(parts: Sequence[NodePart]) -> tuple[Reason, JsonObject] | None:
    stopping = {part.fact.stopping: part for part in parts if part.fact}
    for part in parts:
        ended = _member_states(part)
        for rank, decides in sorted(part.decides.items()):
            if not decides or ended.get(rank) is _SUCCEEDED:
                continue
            # A node that was stopped by its own user, at its command line, explains ranks without an exit
            # status.
            if StopReason.CANCELED in stopping:
                return Reason.CANCELED, {"who": f"node {stopping[StopReason.CANCELED].node}"}
            if StopReason.OUTSIDE in stopping:
                detail = (
                    f"{stopping[StopReason.OUTSIDE].node} was told by the cluster's scheduler to end, which "
                    "has not said why. Submit the run again; if that happens again, ask who runs the cluster."
                )
                return Reason.ENDED_OUTSIDE, {"detail": detail}
            if StopReason.ORPHAN in stopping:
                return Reason.ORPHANED, {"node": stopping[StopReason.ORPHAN].node}
            return Reason.LAUNCH_FAILED, {
                "node": part.node,
                "detail": f"rank {rank} ended without an exit status",
            }
    return None


def _upload_result(parts: Sequence[NodePart]) -> tuple[Reason, JsonObject]:
    for part in parts:
        if part.fact and part.fact.error:
            return _error(part.node, part.fact)
    return Reason.COMPLETED, {}


def _error(node: str, fact: AttemptFact) -> tuple[Reason, JsonObject]:
    return _ERRORS.get(fact.error_kind, Reason.NODE_ERROR), {"node": node, "detail": fact.error}


def signal_name(number: int) -> str:
    """Returns the name of a signal, or `signal N` for a number without a name, such as a real-time one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
