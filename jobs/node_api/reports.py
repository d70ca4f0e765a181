"""Ingests the reports of nodes: logs, then facts, then the answer, which says what the node must do next. The
hub's hot path.

Bytes of logs are appended without touching the database; facts are written only where they have changed. A
node speaks for its own parts of attempts alone."""

from __future__ import annotations

import base64
import dataclasses
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from clusters.node_reports import heartbeat
from jobs.logs import log_store, log_timestamps
from jobs.node_api.assignment import Assignment, Key
from jobs.node_api.node_session import NodeSession
from jobs.node_api.order_handlers import HANDLERS, was_settled
from jobs.node_api.report_ack import complete_ack, report_interval_s
from live.messages import MAX_LOG_DATA, LogAppended
from live.publish import publish
from live.topics import run_topic
from trainhub_launch.eventfiles import is_event_file
from trainhub_launch.report import Ack, AttemptFact, LogChunk, Report, StopOrder
from trainhub_launch.states import Phase, StopReason

log = logging.getLogger(__name__)
# The answer to a claim and a report may cross, and a node with a slow disk or many processes needs a while to
# store the answer: a part is missing only from reports that were sent this much later than its claim was
# answered.
ORPHANED_AFTER = timedelta(seconds=45)


def ingest(session: NodeSession, report: Report, now: datetime | None = None) -> Ack:
    """Ingests a report and returns the answer; the same report again changes nothing.

    Raises WireError for values that no node can have.
    """
    now = now or timezone.now()
    node = session.node
    # First of all: every time that the report names is read by its clock.
    clock_change_s = session.clock.observe(node, report.sent_at, now)
    assignments, is_outdated = _assignments_before(session, report)
    session.late_logs.observe(node, report, assignments, now)
    # Logs before facts: a fact that says "done" is believed only when the bytes that it names are stored.
    offsets = tuple(_ingest_chunk(session, assignments, chunk, now) for chunk in report.logs)
    applied = [_ingest_fact(session, assignments, fact, now) for fact in report.attempts]
    silence_s = heartbeat.apply(node, report.heartbeat, now, agent=report.agent, clock_moved_s=clock_change_s)
    if silence_s:
        for assignment in assignments.values():
            if assignment.claimed_at is not None and not assignment.over:
                HANDLERS[assignment.kind].record_return(node, assignment, silence_s)
    # Facts may have moved runs, and with them what this node has to do.
    if any(applied) or is_outdated:
        assignments = session.assignments.read(fresh=True)
    settled = _settle(session, report, assignments, now)
    ack = Ack(
        offsets=offsets,
        start=tuple(assignment.key for assignment in assignments.values() if assignment.to_start),
        stop=_stop_orders(report, assignments, settled),
        settled=settled,
        daemons=tuple(
            (*assignment.key, assignment.daemon)
            for assignment in assignments.values()
            if assignment.needs_daemon
        ),
        interval_s=report_interval_s(node, assignments),
        checkpoints=tuple(
            (*assignment.key, number, name)
            for assignment in assignments.values()
            if assignment.claimed_at is not None
            for number, name in assignment.checkpoints
        ),
    )
    return complete_ack(node, report, ack, now)


def _assignments_before(session: NodeSession, report: Report) -> tuple[Mapping[Key, Assignment], bool]:
    """Returns the assignments by which to ingest the report, and whether they must be read again for the
    answer. News are ingested by what was read within the last seconds, because they may change it."""
    has_news = any(not session.has_accepted(fact) for fact in report.attempts)
    recent = session.assignments.recent() if has_news else None
    if recent and _are_known(report, recent):
        return recent, True
    # Without a sign of life it is one of many reports with bytes of logs: they share one query.
    fresh = has_news or report.heartbeat is not None or not report.logs
    assignments = session.assignments.read(fresh=fresh)
    # An attempt that is named but not known may have been claimed a moment ago.
    if not fresh and not _are_known(report, assignments):
        assignments = session.assignments.read(fresh=True)
    return assignments, False


def _are_known(report: Report, assignments: Mapping[Key, Assignment]) -> bool:
    """Returns whether the hub knows all attempts that the report names as those of this node."""
    named = {(chunk.run, chunk.attempt) for chunk in report.logs} | {
        (fact.run, fact.attempt) for fact in report.attempts
    }
    return all(
        key in assignments and assignments[key].claimed_at is not None for key in named | set(report.living)
    )


def _ingest_chunk(
    session: NodeSession, assignments: Mapping[Key, Assignment], chunk: LogChunk, now: datetime
) -> tuple[str, int, str, int]:
    """Returns the run, the attempt, the log's name and the offset that the node is to send next. Bytes that
    are not kept are acknowledged all the same, or the node would send them again and again."""
    next_offset = chunk.offset + len(chunk.data)
    assignment = assignments.get((chunk.run, chunk.attempt))
    name = assignment.stored_name(chunk.name) if assignment and assignment.claimed_at else None
    if name is not None:
        try:
            next_offset = _store(session, chunk, name, now)
        except log_store.BadLogName as error:
            log.warning("A log of run %s is not kept: %s", chunk.run, error)
    return chunk.run, chunk.attempt, chunk.name, next_offset


def _store(session: NodeSession, chunk: LogChunk, name: str, now: datetime) -> int:
    before = log_store.size(chunk.run, chunk.attempt, name)
    # What lies beyond the limit is not stored, and not asked for again either.
    if before >= settings.MAX_LOG_BYTES:
        return chunk.offset + len(chunk.data)
    if not chunk.data:
        return before
    try:
        after = log_store.append(chunk.run, chunk.attempt, name, chunk.offset, chunk.data)
    # A chunk was lost, or the node starts anew: it continues at what is stored here.
    except log_store.MissingLogBytes as hole:
        return hole.next_offset
    # Of a node that has come back long after its attempt was settled: it need not send more.
    except log_store.LogArchived:
        return chunk.offset + len(chunk.data)
    # No page shows lines of an event file: it is read as metrics.
    if after > before and not is_event_file(name):
        is_late = session.late_logs.is_late(chunk.run, chunk.attempt, name, before)
        at_ms = int(now.timestamp() * 1000)
        log_timestamps.record_arrival((chunk.run, chunk.attempt, name), before, after, at_ms, late=is_late)
        _publish(chunk, name, before)
    return after


def _publish(chunk: LogChunk, name: str, offset: int) -> None:
    """Sends the bytes from `offset` on to the pages that show the log; of many bytes only their number."""
    data = memoryview(chunk.data)[offset - chunk.offset :]
    message: LogAppended = {
        "type": "log.appended",
        # Chunks may overlap with what was stored before; pages get only the new bytes.
        "run": chunk.run,
        "attempt": chunk.attempt,
        "name": name,
        "offset": offset,
        "size": len(data),
    }
    if len(data) <= MAX_LOG_DATA:
        message["data"] = base64.b64encode(data).decode()
    publish(run_topic(chunk.run), message)


def _ingest_fact(
    session: NodeSession, assignments: Mapping[Key, Assignment], fact: AttemptFact, now: datetime
) -> bool:
    """Returns whether the fact was new."""
    assignment = assignments.get((fact.run, fact.attempt))
    if assignment is None or assignment.claimed_at is None:
        return False
    if fact.phase is Phase.DONE and not _has_all_logs(assignment, fact):
        # A run is over only when its last line is here: readers who wait for its end read the whole log.
        fact = dataclasses.replace(fact, phase=Phase.UPLOADING)
    if session.has_accepted(fact):
        return False
    # Only what was applied counts as accepted. A fact that lost against another transaction comes again with
    # the next report.
    if HANDLERS[assignment.kind].apply(session.node, assignment, fact, now):
        session.accept(fact)
    return True


def _has_all_logs(assignment: Assignment, fact: AttemptFact) -> bool:
    return log_store.are_stored(assignment.run, assignment.attempt, _final_sizes(assignment, fact))


def _settle(
    session: NodeSession, report: Report, assignments: Mapping[Key, Assignment], now: datetime
) -> tuple[Key, ...]:
    """Returns the attempts that the node may forget: reported and stored completely, or unknown here and
    done, or settled before."""
    facts = {(fact.run, fact.attempt): fact for fact in report.attempts}
    named = set(report.living) | facts.keys()
    session.note_named(named)
    # A hub that is behind reads a report, and answers a claim, long after it was sent.
    sent_at = session.clock.hub_time(session.node, report.sent_at, now)
    settled = [
        key
        for key, fact in facts.items()
        if key not in assignments and (fact.phase is Phase.DONE or was_settled(session.node, key))
    ]
    for key, assignment in assignments.items():
        if key in facts and assignment.phase == Phase.DONE:
            if _is_complete(session, assignment, facts[key]):
                _close(session, assignment, now)
                settled.append(key)
        elif (
            key not in named
            and assignment.claimed_at is not None
            and session.has_lost(key, assignment.claimed_at, sent_at, ORPHANED_AFTER)
        ):
            _end_orphan(session, assignment, now)
    return tuple(settled)


def _is_complete(session: NodeSession, assignment: Assignment, fact: AttemptFact) -> bool:
    """Returns whether every byte of every log is stored, and every output. Records the final sizes for
    readers who wait for the end of a log."""
    sizes = _final_sizes(assignment, fact)
    log_store.seal(assignment.run, assignment.attempt, sizes)
    return session.has_accepted(fact) and log_store.are_stored(assignment.run, assignment.attempt, sizes)


def _final_sizes(assignment: Assignment, fact: AttemptFact) -> dict[str, int]:
    """Returns log name -> bytes that will be kept of it."""
    sizes: dict[str, int] = {}
    for name, size in fact.logs.items():
        stored = assignment.stored_name(name)
        try:
            log_store.check_name(stored or "")
        except log_store.BadLogName:
            continue
        sizes[stored or ""] = min(size, settings.MAX_LOG_BYTES)
    return sizes


def _close(session: NodeSession, assignment: Assignment, now: datetime) -> None:
    HANDLERS[assignment.kind].close(session.node, assignment, now)
    log_timestamps.flush_attempt(assignment.run, assignment.attempt)
    session.forget_attempt(assignment.run, assignment.attempt)


def _end_orphan(session: NodeSession, assignment: Assignment, now: datetime) -> None:
    """Ends what the node has lost (its disk or processes): nothing more will come of it."""
    _close(session, assignment, now)
    if not assignment.over:
        HANDLERS[assignment.kind].end_orphan(session.node, assignment, now)


def _stop_orders(
    report: Report, assignments: Mapping[Key, Assignment], settled: tuple[Key, ...]
) -> tuple[StopOrder, ...]:
    """Returns what the node must end, of what the report names: attempts that are canceled, failing or over,
    and those that the hub does not know."""
    named = dict.fromkeys((*report.living, *((fact.run, fact.attempt) for fact in report.attempts)))
    orders = []
    for key in named:
        assignment = assignments.get(key)
        # Unknown here: the hub was restored from a backup, or the attempt was purged. Its processes must not
        # hold the GPUs for ever.
        order = (
            StopOrder(*key, grace_s=10, why=StopReason.ORPHAN) if assignment is None else assignment.stop()
        )
        if order is not None and key not in settled:
            orders.append(order)
    return tuple(orders)
