"""The cause of a failure that a rank has: its sentences, and the ranks that ended with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.causes.cause import Cause, OtherRank, format_ranks
from jobs.causes.cause_selection import CauseChoice, reason_for, same_error
from jobs.causes.evidence import Evidence, RankEvidence
from jobs.causes.failures import FailureMatch
from jobs.causes.log_diagnosis import LogQuote
from jobs.causes.reasons import REMEDIES
from jobs.models import Run
from jobs.outcomes import rank_failure
from jobs.states import MEMBER_FINAL, TIME_LIMITS, MemberState, Reason, RunState


def rank_cause(run: Run, choice: CauseChoice, weighed: Sequence[Evidence]) -> Cause:
    """Returns the cause that names the chosen rank."""
    chosen = choice.evidence
    rank, diagnosis, match = chosen.rank, chosen.diagnosis, chosen.match
    others = [item for item in weighed if item is not chosen]
    # The processes of a launcher have numbers of their own.
    has_number = choice.has_own_error and diagnosis.child is None
    same = same_error(weighed, chosen) if has_number else [chosen]
    ranks = tuple(item.rank.rank for item in same)
    return Cause(
        sentence=" ".join(filter(None, (_sentence(run, rank), _doubt(choice, others), _same(rank, ranks)))),
        remedy=match.remedy if match else REMEDIES[Reason.EXITED],
        rank=rank.rank,
        local_rank=rank.local_rank,
        node=rank.node,
        role=rank.role,
        child=diagnosis.child.rank if diagnosis.child else None,
        exception=diagnosis.exception,
        began=diagnosis.began,
        log=rank.log,
        **failure_fields(match),
        **quote_fields(diagnosis.quote),
        at=rank.ended_at.isoformat() if rank.ended_at else None,
        is_certain=chosen.agrees and (choice.has_own_error or not others),
        ranks=ranks if len(ranks) > 1 else (),
        shared=_shared_words(same),
        others=other_ranks(others, chosen),
    )


def other_ranks(others: Sequence[Evidence], chosen: Evidence | None = None) -> tuple[OtherRank, ...]:
    """Returns the ranks besides the cause, ascending, each with a short reason why it ended."""
    return tuple(
        OtherRank(item.rank.rank, item.rank.node, reason_for(item, chosen or item))
        for item in sorted(others, key=_rank_number)
    )


def failure_fields(match: FailureMatch | None) -> dict[str, Any]:
    if match is None:
        return {}
    return {
        "kind": match.failure.kind,
        "title": match.failure.title,
        "meaning": match.meaning,
        "link": match.failure.link,
    }


def quote_fields(quote: LogQuote | None) -> dict[str, Any]:
    return {"quote": quote.text, "offset": quote.offset} if quote else {}


def _rank_number(item: Evidence) -> int:
    return item.rank.rank


def _sentence(run: Run, rank: RankEvidence) -> str:
    if run.state == RunState.FAILED and run.reason in TIME_LIMITS:
        return run.sentence
    if rank.state != MemberState.FAILED:
        detail = (
            "it has not exited yet"
            if rank.state not in MEMBER_FINAL
            else "TrainHub stopped it with the others before it had exited"
        )
        return f"Rank {rank.rank} raised an error on {rank.node}; {detail}."
    reason, more = rank_failure(rank, rank.node)
    return reason.sentence(**more)


def _same(rank: RankEvidence, ranks: Sequence[int]) -> str:
    more = [number for number in ranks if number != rank.rank]
    if not more:
        return ""
    return f"Rank{'s' if len(more) > 1 else ''} {format_ranks(more)} ended with the same error."


def _shared_words(same: Sequence[Evidence]) -> str:
    """Returns the error in words that hold for all of these ranks: addresses and numbers of GPUs differ."""
    first = same[0]
    if len({item.diagnosis.exception for item in same}) == 1 or first.match is None:
        return first.diagnosis.exception
    return first.match.failure.title


def _doubt(choice: CauseChoice, others: Sequence[Evidence]) -> str:
    """Returns why the cause is not certain, or ""."""
    chosen = choice.evidence
    if choice.has_own_error:
        if chosen.agrees:
            return ""
        if chosen.diagnosis.is_far:
            return "Much output follows this exception in its log, so it may have ended for another reason."
        return "A Python exception ends a process with code 1, so its script may have handled this one."
    if not others:
        return ""
    silent = [item.rank for item in others if item.rank.state == MemberState.LOST]
    doubt = "No rank reported an error of its own; this one was the first to lose the others."
    if silent:
        nodes = ", ".join(sorted({item.node for item in silent}))
        doubt += f" No report from {len(silent)} rank{'s' if len(silent) > 1 else ''} on {nodes}."
    return doubt
