"""Selects the rank that caused a failure, and explains why the others ended. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.causes.cause import format_ranks
from jobs.causes.evidence import Evidence, EvidenceWeight
from jobs.states import MemberState

SAME_ERROR = "ended with the same error"
OWN_ERROR = "also failed by itself"
STOPPED = "ended by TrainHub"
NO_REPORT = "no report"
STILL_ENDING = "is still ending"
NO_ERROR = "ended without a message"


@dataclass(frozen=True)
class CauseChoice:
    """`has_own_error`: the rank did not just lose the others, as their first."""

    evidence: Evidence
    has_own_error: bool

    @property
    def is_certain(self) -> bool:
        """Whether the rank has an error of its own and ended as this error ends a process."""
        return self.has_own_error and self.evidence.agrees


def choose(evidence: Iterable[Evidence]) -> CauseChoice | None:
    """Returns the rank that most likely is the cause, or None.

    A rank with an error of its own comes before one that just ended, that one before a rank that lost its
    peers. Among equals a known failure comes first, because the others may be what followed from it in words
    that are not known; then the first by time."""
    ranked = sorted((item for item in evidence if item.weight is not EvidenceWeight.NOTHING), key=_order)
    return CauseChoice(ranked[0], ranked[0].weight is not EvidenceWeight.ECHO) if ranked else None


def _order(item: Evidence) -> tuple[int, bool, float, int]:
    at = item.at.timestamp() if item.at else float("inf")
    return item.weight, not item.is_known, at, item.rank.rank


def same_error(evidence: Iterable[Evidence], chosen: Evidence) -> list[Evidence]:
    """Returns the chosen rank and those that failed by themselves with the same error, by rank."""
    same = [
        item
        for item in evidence
        if item is chosen
        or (
            item.weight is EvidenceWeight.OWN
            and item.rank.state == MemberState.FAILED
            and _is_same(item, chosen)
        )
    ]
    return sorted(same, key=lambda item: item.rank.rank)


def reason_for(item: Evidence, chosen: Evidence) -> str:
    """Returns a short reason why a rank that is not the cause ended."""
    if item.weight is EvidenceWeight.ECHO and item.match is not None:
        return item.match.failure.echo
    if item.weight in (EvidenceWeight.OWN, EvidenceWeight.PLAIN):
        return (
            SAME_ERROR
            if _is_same(item, chosen)
            else OWN_ERROR
            if item.weight is EvidenceWeight.OWN
            else NO_ERROR
        )
    return {MemberState.STOPPED.value: STOPPED, MemberState.LOST.value: NO_REPORT}.get(
        item.rank.state, STILL_ENDING
    )


def _is_same(item: Evidence, chosen: Evidence) -> bool:
    one, other = item.diagnosis, chosen.diagnosis
    if one.exception or other.exception:
        # Only the exception types are compared: paths, addresses and numbers differ from rank to rank.
        return (
            bool(one.exception)
            and one.exception.split(":")[0] == other.exception.split(":")[0]
            and item.match == chosen.match
        )
    return (
        item.match == chosen.match
        and item.rank.exit_code == chosen.rank.exit_code
        and item.rank.signal == chosen.rank.signal
    )


def group_reasons(words: Sequence[tuple[int, str]]) -> list[tuple[str, str]]:
    """Groups (rank, reason) pairs into (reason, "0, 2–5"), the most frequent reason first."""
    ranks: dict[str, list[int]] = {}
    for rank, word in sorted(words):
        ranks.setdefault(word, []).append(rank)
    return [
        (word, format_ranks(numbers))
        for word, numbers in sorted(ranks.items(), key=lambda item: -len(item[1]))
    ]
