"""Finds the cause of a failed attempt in its rows and logs.

Reads files, so it must not run inside a transaction that holds locks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from jobs.causes import failures
from jobs.causes.absent_rank import absent_rank
from jobs.causes.cause import Cause
from jobs.causes.cause_selection import CauseChoice, choose
from jobs.causes.evidence import Evidence, EvidenceWeight, RankEvidence, weigh
from jobs.causes.failures import FailureMatch
from jobs.causes.log_diagnosis import LogDiagnosis
from jobs.causes.log_reading import LONG_TAIL_BYTES, MAX_LONG_TAILS, SHORT_TAIL_BYTES, diagnose
from jobs.causes.rank_cause import failure_fields, other_ranks, quote_fields, rank_cause
from jobs.causes.reasons import LOG_OF_REASON, RANK_REASONS, REMEDIES, WITHOUT_CAUSE
from jobs.causes.silence import first_to_fall_silent, was_silent
from jobs.logs.log_timestamps import LogTimeline
from jobs.models import Attempt, AttemptNode, Member, Run
from jobs.redaction import mask
from jobs.states import TIME_LIMITS, MemberState, RunState
from jobs.tokens import attempt_token

# Number of ranks whose logs are read: those that failed first, then the others.
MAX_RANKS_READ = 64
# Number of ranks whose whole logs, which may have gigabytes, are searched if their ends show no error.
MAX_WHOLE_LOGS = 4


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
        is_failed and run.reason in TIME_LIMITS
    ):
        choice = choose(
            item
            for item in evidence
            # A rank that was stopped after it lost a peer shows no more than that there was an earlier
            # failure.
            if item.weight is not EvidenceWeight.ECHO or item.rank.state == MemberState.FAILED
        )
        if row is not None and choice is not None and _is_to_blame(run, choice, is_failed=is_failed):
            cause = absent_rank(row, choice, evidence) or rank_cause(run, choice, evidence)
            return _masked(cause, run_id, attempt)
    return _masked(_reason_cause(run, row, evidence), run_id, attempt) if is_failed else None


def _is_to_blame(run: Run, choice: CauseChoice, *, is_failed: bool) -> bool:
    """Returns whether the rank is the cause. A rank that only reacted to another one's end does not outweigh
    a known problem of a node or the time limit."""
    return not is_failed or run.reason in RANK_REASONS or choice.has_own_error


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
    limit = LONG_TAIL_BYTES if len(ranks) <= MAX_LONG_TAILS else SHORT_TAIL_BYTES
    diagnoses = {
        rank.rank: diagnose(
            run.pk,
            attempt.number,
            rank.log,
            limit,
            launcher=rank.role == "launcher",
            # Python exits with 1 after an exception; another code says that the end of the log is enough.
            whole_log=index < MAX_WHOLE_LOGS and rank.exit_code == 1,
        )
        for index, rank in enumerate(ranks[:MAX_RANKS_READ])
    }
    weighed = [weigh(rank, diagnoses.get(rank.rank, LogDiagnosis())) for rank in ranks]
    return [replace(item, logged_at=_logged_at(run, attempt, item)) for item in weighed]


def _logged_at(run: Run, attempt: Attempt, item: Evidence) -> datetime | None:
    quote = item.diagnosis.quote
    if quote is None or not item.diagnosis.raised:
        return None
    arrival = LogTimeline.load(run.pk, attempt.number, item.rank.log).arrival_at(quote.offset)
    # Late bytes had to wait on the node, so that their arrival says nothing.
    return None if arrival.late else datetime.fromtimestamp(arrival.last_ms / 1000, UTC)


def _reason_cause(run: Run, attempt: Attempt | None, weighed: Sequence[Evidence]) -> Cause:
    """Returns a cause that names no rank: the run's reason, with lines of the log that explains it."""
    node = str(run.facts.get("node", ""))
    # The node's own sentence, such as pip's last line, where its log is not here.
    log = _log_of(run, attempt, node)
    diagnosis = diagnose(run.pk, run.attempt, log) if log and attempt else LogDiagnosis()
    match = diagnosis.match or failures.match_line(str(run.facts.get("detail", "")))
    sentence = run.sentence
    if run.reason in TIME_LIMITS and was_silent(run, weighed):
        match = FailureMatch(failures.HUNG)
        sentence = f"{sentence} {first_to_fall_silent(run, weighed)}".rstrip()
    return Cause(
        sentence=sentence,
        remedy=match.remedy if match else REMEDIES.get(run.reason, ""),
        node=node,
        exception=diagnosis.exception,
        log=log if diagnosis.quote else "",
        **failure_fields(match),
        **quote_fields(diagnosis.quote),
        at=run.finished_at.isoformat() if run.finished_at else None,
        others=other_ranks(weighed),
    )


def _log_of(run: Run, attempt: Attempt | None, node: str) -> str:
    """Returns the name of the log that belongs to the reason, or "".

    The logs of nodes other than the head are in a folder per node."""
    name = LOG_OF_REASON.get(run.reason, "")
    part = AttemptNode.objects.filter(attempt=attempt, node__name=node).first() if name and attempt else None
    return f"node_{part.node_rank}/{name}" if part is not None and part.node_rank else name


def _masked(cause: Cause, run_id: str, attempt: int) -> Cause:
    """Returns the cause with the attempt's token masked, in case the script printed it."""
    secrets = (attempt_token(run_id, attempt),)
    fields = cause.to_json()
    return Cause.from_json(
        {name: mask(value, secrets) if isinstance(value, str) else value for name, value in fields.items()}
    )
