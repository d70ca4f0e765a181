"""Finds the rank that the others waited for in vain: it ended too early, or never reached their barrier.

Such a rank reports no error. It is named as probable, never as certain."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobs.causes.cause import Cause
from jobs.causes.cause_selection import CauseChoice, reason_for
from jobs.causes.evidence import Evidence, EvidenceWeight
from jobs.causes.failures import LEFT_EARLY, NEVER_ARRIVED, FailureMatch
from jobs.causes.log_reading import diagnose
from jobs.causes.rank_cause import failure_fields, other_ranks, quote_fields
from jobs.models import Attempt, Member
from jobs.states import MemberState

# From torch.distributed.monitored_barrier: the ranks that did not arrive.
_NOT_ARRIVED = re.compile(r"Ranks? ([\d, ]+) failed to pass monitoredBarrier")
WAITED = "peer_silent"


def absent_rank(attempt: Attempt, choice: CauseChoice, weighed: Sequence[Evidence]) -> Cause | None:
    """Returns the cause that names the rank which the others missed; None if no single one can be told."""
    if choice.has_own_error:
        return None
    first = choice.evidence
    member = _ended_too_early(attempt, first)
    if member is not None:
        sentence = (
            f"Rank {member.rank} on {member.node.name} ended with exit code 0 while other ranks still needed "
            f"it; rank {first.rank.rank} then {reason_for(first, first)}."
        )
        return _cause(member, sentence, FailureMatch(LEFT_EARLY), weighed)
    member = _never_arrived(attempt, first, weighed)
    if member is None:
        return None
    sentence = (
        f"Rank {first.rank.rank} on {first.rank.node} waited until its timeout. Rank {member.rank} on "
        f"{member.node.name} did not report that it waited, so it probably never got there."
    )
    return _cause(member, sentence, FailureMatch(NEVER_ARRIVED), weighed)


def _ended_too_early(attempt: Attempt, first: Evidence) -> Member | None:
    """Returns the rank that succeeded first, if that was before the first rank lost the others."""
    if first.rank.ended_at is None:
        return None
    return (
        Member.objects.filter(
            attempt=attempt, state=MemberState.SUCCEEDED, decides=True, ended_at__lt=first.rank.ended_at
        )
        .select_related("node", "attempt")
        .order_by("ended_at", "rank")
        .first()
    )


def _never_arrived(attempt: Attempt, first: Evidence, weighed: Sequence[Evidence]) -> Member | None:
    if first.match is None or first.match.failure.kind != WAITED:
        return None
    named = _NOT_ARRIVED.search(first.diagnosis.exception)
    if named:
        ranks = {int(number) for number in named[1].replace(",", " ").split()}
    else:
        ranks = {item.rank.rank for item in weighed if item.weight is EvidenceWeight.NOTHING}
    if len(ranks) != 1:
        return None
    return Member.objects.filter(attempt=attempt, rank=ranks.pop()).select_related("node", "attempt").first()


def _cause(member: Member, sentence: str, match: FailureMatch, weighed: Sequence[Evidence]) -> Cause:
    last_lines = diagnose(member.attempt.run_id, member.attempt.number, member.log_name).quote
    return Cause(
        sentence=sentence,
        remedy=match.remedy,
        rank=member.rank,
        local_rank=member.local_rank,
        node=member.node.name,
        role=member.role,
        log=member.log_name,
        **failure_fields(match),
        **quote_fields(last_lines),
        at=member.ended_at.isoformat() if member.ended_at else None,
        is_certain=False,
        others=other_ranks([item for item in weighed if item.rank.rank != member.rank]),
    )
