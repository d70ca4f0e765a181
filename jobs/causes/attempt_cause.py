"""Finds the cause of a failed attempt in its rows and logs.

Reads files, so it must not run inside a transaction that holds locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.causes import failures
from jobs.causes.cause import Cause, OtherRank
from jobs.causes.cause_selection import CauseChoice, choose, reason_for
from jobs.causes.evidence import Evidence, EvidenceWeight, RankEvidence, weigh
from jobs.causes.failures import FailureMatch
from jobs.causes.log_diagnosis import LogDiagnosis, LogQuote, diagnose_log
from jobs.causes.reasons import LOG_OF_REASON, RANK_REASONS, REMEDIES, WITHOUT_CAUSE
from jobs.logs import log_store
from jobs.models import Attempt, AttemptNode, Member, Run
from jobs.outcomes import rank_failure
from jobs.redaction import mask
from jobs.states import MEMBER_FINAL, MemberState, Reason, RunState
from jobs.tokens import attempt_token

# The last traceback of a rank, with the output of other threads after it.
TAIL_BYTES = 256 * 1024
SHORT_TAIL_BYTES = 64 * 1024
# With more ranks than this, shorter log tails are read.
MAX_LONG_TAILS = 16
# Number of ranks whose logs are read: those that failed first, then the others.
MAX_RANKS_READ = 64
MIN_SILENCE_S = 60


def find_cause(run_id: str, attempt: int) -> Cause | None:
    """Returns the cause of the attempt's failure, or None if it has not failed or no cause is known yet."""
    run = Run.objects.get(pk=run_id)
    row = Attempt.objects.filter(run=run, number=attempt).first()
    is_latest = run.attempt == attempt
    if is_latest and run.state in WITHOUT_CAUSE:
        return None
    evidence = _evidence(run, row) if row is not None else []
    is_failed = is_latest and run.state == RunState.FAILED
    if any(item.rank.state == MemberState.FAILED for item in evidence) or (
        is_failed and run.reason == Reason.TIMED_OUT
    ):
        choice = choose(
            item
            for item in evidence
            # A rank that was stopped after it lost a peer shows no more than that there was an earlier
            # failure.
            if item.weight is not EvidenceWeight.ECHO or item.rank.state == MemberState.FAILED
        )
        if choice is not None and _is_to_blame(run, choice, is_failed=is_failed):
            return _masked(_rank_cause(run, choice, evidence), run_id, attempt)
    return _masked(_reason_cause(run, row, evidence), run_id, attempt) if is_failed else None


def _is_to_blame(run: Run, choice: CauseChoice, *, is_failed: bool) -> bool:
    """Returns whether the rank is the cause. A rank that only reacted to another one's end does not outweigh
    a known problem of a node or the time limit."""
    return not is_failed or run.reason in RANK_REASONS or choice.is_certain


def unsuccessful_ranks(attempt: Attempt) -> list[RankEvidence]:
    """Returns the ranks that did not succeed."""
    out_of_memory = {
        fact["rank"]
        for part in AttemptNode.objects.filter(attempt=attempt).only("fact")
        for fact in part.fact.get("members", ())
        if fact.get("out_of_memory")
    }
    rows = Member.objects.filter(attempt=attempt).exclude(state=MemberState.SUCCEEDED).select_related("node")
    return [
        RankEvidence(
            member.rank,
            member.local_rank,
            member.node.name,
            member.log_name,
            member.state,
            member.role,
            member.exit_code,
            member.signal,
            member.ended_at,
            member.rank in out_of_memory,
        )
        for member in rows
    ]


def _evidence(run: Run, attempt: Attempt) -> list[Evidence]:
    ranks = unsuccessful_ranks(attempt)
    # Failed ranks first, in the order of their ends: the first is usually the cause, and reading logs of a
    # thousand ranks takes seconds.
    ranks.sort(
        key=lambda rank: (rank.state != MemberState.FAILED, rank.ended_at is None, rank.ended_at, rank.rank)
    )
    limit = TAIL_BYTES if len(ranks) <= MAX_LONG_TAILS else SHORT_TAIL_BYTES
    read = {rank.rank for rank in ranks[:MAX_RANKS_READ]}
    return [
        weigh(rank, _diagnose_rank(run, attempt, rank, limit) if rank.rank in read else LogDiagnosis())
        for rank in ranks
    ]


def _diagnose_rank(run: Run, attempt: Attempt, rank: RankEvidence, limit: int) -> LogDiagnosis:
    return _diagnose(run, attempt.number, rank.log, limit, launcher=rank.role == "launcher")


def _diagnose(
    run: Run, attempt: int, log: str, limit: int = TAIL_BYTES, *, launcher: bool = False
) -> LogDiagnosis:
    size = log_store.size(run.pk, attempt, log)
    start = max(0, size - limit)
    tail = log_store.read(run.pk, attempt, log, start, limit)
    if start:
        # The tail begins inside a line, which is dropped unless it is the only one.
        first = tail.find(b"\n") + 1
        tail, start = tail[first:], start + first
    return diagnose_log(tail, start, launcher=launcher)


def _rank_cause(run: Run, choice: CauseChoice, weighed: Sequence[Evidence]) -> Cause:
    chosen = choice.evidence
    rank, diagnosis, match = chosen.rank, chosen.diagnosis, chosen.match
    others = [item for item in weighed if item is not chosen]
    is_certain = choice.is_certain or not others
    return Cause(
        sentence=_sentence(run, rank) if is_certain else _uncertain(run, rank, others),
        remedy=match.remedy if match else REMEDIES[Reason.EXITED],
        rank=rank.rank,
        local_rank=rank.local_rank,
        node=rank.node,
        role=rank.role,
        child=diagnosis.child.rank if diagnosis.child else None,
        exception=diagnosis.exception,
        began=diagnosis.began,
        log=rank.log,
        **_failure_fields(match),
        **_quote_fields(diagnosis.quote),
        at=rank.ended_at.isoformat() if rank.ended_at else None,
        is_certain=is_certain,
        others=tuple(
            OtherRank(item.rank.rank, item.rank.node, reason_for(item, chosen))
            for item in sorted(others, key=_rank_number)
        ),
    )


def _rank_number(item: Evidence) -> int:
    return item.rank.rank


def _failure_fields(match: FailureMatch | None) -> dict[str, Any]:
    if match is None:
        return {}
    return {
        "kind": match.failure.kind,
        "title": match.failure.title,
        "meaning": match.meaning,
        "link": match.failure.link,
    }


def _quote_fields(quote: LogQuote | None) -> dict[str, Any]:
    return {"quote": quote.text, "offset": quote.offset} if quote else {}


def _sentence(run: Run, rank: RankEvidence) -> str:
    if run.state == RunState.FAILED and run.reason == Reason.TIMED_OUT:
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


def _uncertain(run: Run, rank: RankEvidence, others: Sequence[Evidence]) -> str:
    silent = [item.rank for item in others if item.rank.state == MemberState.LOST]
    silent_text = ""
    if silent:
        nodes = sorted({item.node for item in silent})
        silent_text = (
            f" Not heard from: {len(silent)} rank{'s' if len(silent) > 1 else ''} on {', '.join(nodes)}."
        )
    return (
        f"{_sentence(run, rank)} No rank reported an error of its own; this one was the first to lose the "
        f"others.{silent_text}"
    )


def _reason_cause(run: Run, attempt: Attempt | None, weighed: Sequence[Evidence]) -> Cause:
    """Returns a cause that names no rank: the run's reason, with lines of the log that explains it."""
    node = str(run.facts.get("node", ""))
    # The node's own sentence, such as pip's last line, where its log is not here.
    log = _log_of(run, attempt, node)
    diagnosis = _diagnose(run, run.attempt, log) if log and attempt else LogDiagnosis()
    match = diagnosis.match or failures.match_line(str(run.facts.get("detail", "")))
    if run.reason == Reason.TIMED_OUT and _was_silent(run, weighed):
        match = FailureMatch(failures.HUNG)
    return Cause(
        sentence=run.sentence,
        remedy=match.remedy if match else REMEDIES.get(run.reason, ""),
        node=node,
        exception=diagnosis.exception,
        log=log if diagnosis.quote else "",
        **_failure_fields(match),
        **_quote_fields(diagnosis.quote),
        at=run.finished_at.isoformat() if run.finished_at else None,
        others=tuple(
            OtherRank(item.rank.rank, item.rank.node, reason_for(item, item))
            for item in sorted(weighed, key=_rank_number)
        ),
    )


def _log_of(run: Run, attempt: Attempt | None, node: str) -> str:
    """Returns the name of the log that belongs to the reason, or "".

    The logs of nodes other than the head are in a folder per node."""
    name = LOG_OF_REASON.get(run.reason, "")
    part = AttemptNode.objects.filter(attempt=attempt, node__name=node).first() if name and attempt else None
    return f"node_{part.node_rank}/{name}" if part is not None and part.node_rank else name


def _was_silent(run: Run, weighed: Sequence[Evidence]) -> bool:
    """Returns whether no rank wrote anything for the last half of the time limit, at least for a minute."""
    files = [log_store.path(run.pk, run.attempt, item.rank.log) for item in weighed]
    # The file of a log changes when the hub appends bytes, so this is the last arrival by the hub's clock.
    last = max((file.stat().st_mtime for file in files if file.exists()), default=None)
    if last is None or run.finished_at is None:
        return False
    return run.finished_at.timestamp() - last >= max(MIN_SILENCE_S, float(run.facts.get("seconds") or 0) / 2)


def _masked(cause: Cause, run_id: str, attempt: int) -> Cause:
    """Returns the cause with the attempt's token masked, in case the script printed it."""
    secrets = (attempt_token(run_id, attempt),)
    fields = cause.to_json()
    return Cause.from_json(
        {name: mask(value, secrets) if isinstance(value, str) else value for name, value in fields.items()}
    )
