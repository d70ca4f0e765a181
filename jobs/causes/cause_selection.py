"""Which of many ranks is the cause, and why each of the others ended; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.causes.evidence import Evidence, Standing
from jobs.states import MemberState

SAME = "ended with the same error"
OWN = "failed by itself too"
STOPPED = "ended by TrainHub"
LOST = "not heard from"
LIVES = "is still ending"
EXITED = "ended without a word"


@dataclass(frozen=True)
class Choice:
    """`is_certain`: the rank tells an error of its own; else it was only the first that lost the others."""

    evidence: Evidence
    is_certain: bool


def choose(found: Iterable[Evidence]) -> Choice | None:
    """Who tells an error of its own beats who just ended, that beats who lost its peers; then the first by
    time."""
    ranked = sorted((item for item in found if item.standing is not Standing.NOTHING), key=_order)
    return Choice(ranked[0], ranked[0].standing is not Standing.ECHO) if ranked else None


def _order(item: Evidence) -> tuple[int, float, int]:
    ended = item.rank.ended_at
    return item.standing, ended.timestamp() if ended else float("inf"), item.rank.rank


def why(item: Evidence, chosen: Evidence) -> str:
    """Why a rank that is not the cause ended, in a few words."""
    if item.standing is Standing.ECHO and item.match is not None:
        return item.match.known.echo
    if item.standing in (Standing.OWN, Standing.PLAIN):
        return SAME if _is_same(item, chosen) else OWN if item.standing is Standing.OWN else EXITED
    return {MemberState.STOPPED.value: STOPPED, MemberState.LOST.value: LOST}.get(item.rank.state, LIVES)


def _is_same(item: Evidence, chosen: Evidence) -> bool:
    one, other = item.saying, chosen.saying
    if one.exception or other.exception:
        # Paths, addresses and numbers differ from rank to rank; the beginning does not.
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


def grouped(words: Sequence[tuple[int, str]]) -> list[tuple[str, str]]:
    """(rank, why) -> (why, "0, 2–5"), the most frequent first."""
    ranks: dict[str, list[int]] = {}
    for rank, word in sorted(words):
        ranks.setdefault(word, []).append(rank)
    return [(word, spans(found)) for word, found in sorted(ranks.items(), key=lambda item: -len(item[1]))]


def spans(ranks: Sequence[int]) -> str:
    """0, 2, 3, 4 -> "0, 2–4"."""
    out: list[tuple[int, int]] = []
    for rank in ranks:
        if out and out[-1][1] + 1 == rank:
            out[-1] = (out[-1][0], rank)
        else:
            out.append((rank, rank))
    return ", ".join(_span(first, last) for first, last in out)


def _span(first: int, last: int) -> str:
    if last - first > 1:
        return f"{first}–{last}"
    return f"{first}" if first == last else f"{first}, {last}"
