"""What a node tells, taken in: logs, then facts, then what the node is to do next. The hub's hot path.

Bytes of logs are appended without touching the database; facts are written only where they changed.
A node speaks for its own parts alone.
"""

from __future__ import annotations

import base64
import dataclasses
import logging
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from clusters.models import Node
from clusters.node_reports import clocks, heartbeat
from jobs import causes, lifecycle
from jobs.attempts import apply_attempt_report
from jobs.attempts.attempt_end import end
from jobs.logs import late_log_bytes, log_store, log_timestamps
from jobs.models import AttemptNode
from jobs.node_api import fast_ack, node_assignments
from jobs.node_api.node_assignments import Holding, Key
from jobs.states import Reason
from live.messages import MAX_LOG_DATA, LogAppended
from live.publish import publish
from live.topics import run_topic
from trainhub_launch.eventfiles import is_event_file
from trainhub_launch.report import Ack, AttemptFact, LogChunk, Report, StopOrder

log = logging.getLogger(__name__)
ORPHANED_AFTER = timedelta(seconds=20)
"""A claim's answer and a report may cross: only a part claimed this long ago can be missed."""

_seen_lock = threading.Lock()
_seen: dict[tuple[int, str, int], AttemptFact] = {}


def ingest(node: Node, report: Report, now: datetime | None = None) -> Ack:
    """Take the report in; the same report again changes nothing. Raises WireError for what no node can
    say."""
    now = now or timezone.now()
    # First of all: by its clock, every time that the report names is read.
    moved_s = clocks.observe(node, report.sent_at, now)
    changed = [fact for fact in report.attempts if not _is_known(node, fact)]
    held = _held(node, report, fresh=bool(changed) or report.heartbeat is not None or not report.logs)
    late_log_bytes.hear(node, report, held, now)
    offsets = tuple(_take_chunk(held.get((chunk.run, chunk.attempt)), chunk, now) for chunk in report.logs)
    taken = [_take_fact(node, held.get((fact.run, fact.attempt)), fact, now) for fact in report.attempts]
    silence_s = heartbeat.apply(node, report.heartbeat, now, agent=report.agent, clock_moved_s=moved_s)
    if silence_s:
        _note_return(node, held, silence_s)
    if any(taken):
        held = node_assignments.of(node.pk, fresh=True)
    settled = _settle(node, report, held, now)
    ack = Ack(
        offsets=offsets,
        start=tuple(holding.key for holding in held.values() if holding.to_start),
        stop=_stops(report, held, settled),
        settled=settled,
        daemons=tuple((*holding.key, holding.daemon) for holding in held.values() if holding.daemon_wanted),
        interval_s=fast_ack.pace(node, held),
    )
    return fast_ack.answer(node, report, ack, now)


def ingest_numbers(node: Node, report: Report, now: datetime | None = None) -> Ack | None:
    """The same, without asking the database, for a report that tells nothing else and asks for nothing; None
    for any other."""
    if not all(fact.phase != "done" and _is_known(node, fact) for fact in report.attempts):
        return None
    return fast_ack.at_once(node, report, now or timezone.now())


def restart() -> None:
    """Remember nothing, as a process does that has just begun."""
    with _seen_lock:
        _seen.clear()
    fast_ack.restart()
    log_timestamps.restart()
    late_log_bytes.restart()


def _held(node: Node, report: Report, *, fresh: bool) -> Mapping[Key, Holding]:
    held = node_assignments.of(node.pk, fresh=fresh)
    # What is named but not known may have been claimed a moment ago.
    named = {(chunk.run, chunk.attempt) for chunk in report.logs} | {
        (fact.run, fact.attempt) for fact in report.attempts
    }
    if not fresh and any(
        key not in held or held[key].claimed_at is None for key in named | set(report.living)
    ):
        held = node_assignments.of(node.pk, fresh=True)
    return held


def _note_return(node: Node, held: Mapping[Key, Holding], silence_s: float) -> None:
    for holding in held.values():
        if holding.claimed_at is not None and not holding.over:
            message = f"Node {node.name} reports again, after {silence_s:.0f} s of silence."
            lifecycle.note(holding.run, message, actor=f"node {node.name}", attempt=holding.attempt)


def _take_chunk(holding: Holding | None, chunk: LogChunk, now: datetime) -> tuple[str, int, str, int]:
    """The offset wanted next. Bytes nobody may keep are acknowledged, so that the node does not send them for
    ever."""
    end_of_chunk = chunk.offset + len(chunk.data)
    wanted = end_of_chunk
    name = holding.stored_name(chunk.name) if holding and holding.claimed_at else None
    if holding is not None and name is not None:
        try:
            wanted = _store(holding, name, chunk, now)
        except log_store.BadName as error:
            log.warning("A log of run %s is not kept: %s", chunk.run, error)
    return chunk.run, chunk.attempt, chunk.name, wanted


def _store(holding: Holding, name: str, chunk: LogChunk, now: datetime) -> int:
    before = log_store.size(chunk.run, chunk.attempt, name)
    if before >= settings.MAX_LOG_BYTES:
        return chunk.offset + len(chunk.data)
    if not chunk.data:
        return before
    try:
        after = log_store.append(chunk.run, chunk.attempt, name, chunk.offset, chunk.data)
    except log_store.Hole as hole:
        return hole.wanted
    # Of an event file nobody shows a line: it is read as metrics.
    if after > before and not is_event_file(name):
        late = late_log_bytes.is_late(chunk.run, chunk.attempt, name, before)
        log_timestamps.note(
            (chunk.run, chunk.attempt, name), before, after, int(now.timestamp() * 1000), late=late
        )
        new = memoryview(chunk.data)[before - chunk.offset :]
        message: LogAppended = {
            "type": "log.appended",
            "run": chunk.run,
            "attempt": chunk.attempt,
            "name": name,
            "offset": before,
            "size": len(new),
        }
        if len(new) <= MAX_LOG_DATA:
            message["data"] = base64.b64encode(new).decode()
        publish(run_topic(holding.run), message)
    return after


def _is_known(node: Node, fact: AttemptFact) -> bool:
    """Whether this process has taken exactly this fact before, but for the sizes of logs that still grow."""
    with _seen_lock:
        return _seen.get((node.pk, fact.run, fact.attempt)) == _comparable(fact)


def _comparable(fact: AttemptFact) -> AttemptFact:
    return fact if fact.phase == "done" else dataclasses.replace(fact, logs={})


def _take_fact(node: Node, holding: Holding | None, fact: AttemptFact, now: datetime) -> bool:
    """Whether the fact was news."""
    if holding is None or holding.claimed_at is None:
        return False
    if fact.phase == "done" and not _has_all_logs(holding, fact):
        # A run is over once its last line is here: whoever waits for the end reads the whole log.
        fact = dataclasses.replace(fact, phase="uploading")
    if _is_known(node, fact):
        return False
    if apply_attempt_report.apply(node, holding.part_id, fact, now):
        with _seen_lock:
            _seen[(node.pk, fact.run, fact.attempt)] = _comparable(fact)
    return True


def _has_all_logs(holding: Holding, fact: AttemptFact) -> bool:
    return log_store.whole(holding.run, holding.attempt, _final_sizes(holding, fact))


def _settle(node: Node, report: Report, held: Mapping[Key, Holding], now: datetime) -> tuple[Key, ...]:
    """The attempts that the node may forget: all told and stored, or unknown and done, or settled before."""
    told = {(fact.run, fact.attempt): fact for fact in report.attempts}
    named = set(report.living) | told.keys()
    done = [
        key
        for key, fact in told.items()
        if key not in held and (fact.phase == "done" or _was_settled(node, key))
    ]
    for key, holding in held.items():
        if key in told and holding.phase == "done":
            if _is_whole(node, holding, told[key]):
                _close(node, holding, now)
                done.append(key)
        elif (
            key not in named and holding.claimed_at is not None and now - holding.claimed_at > ORPHANED_AFTER
        ):
            _orphan(node, holding, now)
    return tuple(done)


def _is_whole(node: Node, holding: Holding, fact: AttemptFact) -> bool:
    """Every byte of every log is stored, and every output; notes the final sizes for readers who wait for the
    end."""
    sizes = _final_sizes(holding, fact)
    log_store.seal(holding.run, holding.attempt, sizes)
    return _is_known(node, fact) and log_store.whole(holding.run, holding.attempt, sizes)


def _final_sizes(holding: Holding, fact: AttemptFact) -> dict[str, int]:
    """Log name -> bytes that will be kept of it."""
    sizes: dict[str, int] = {}
    for name, size in fact.logs.items():
        stored = holding.stored_name(name)
        try:
            log_store.check(stored or "")
        except log_store.BadName:
            continue
        sizes[stored or ""] = min(size, settings.MAX_LOG_BYTES)
    return sizes


def _close(node: Node, holding: Holding, now: datetime) -> None:
    part = AttemptNode.objects.select_related("node").get(pk=holding.part_id)
    lifecycle.settle(part, holding.run, holding.attempt, now)
    causes.store_soon(holding.run, holding.attempt)
    if not AttemptNode.objects.filter(attempt_id=part.attempt_id, settled_at=None).exists():
        log_store.close(holding.run, holding.attempt)
    node_assignments.forget(node.pk)
    log_timestamps.forget(holding.run, holding.attempt)
    late_log_bytes.forget(holding.run, holding.attempt)
    with _seen_lock:
        _seen.pop((node.pk, holding.run, holding.attempt), None)


def _orphan(node: Node, holding: Holding, now: datetime) -> None:
    """The node has lost the part (its disk, its processes): nothing more will come, and its GPUs are free."""
    _close(node, holding, now)
    if not holding.over:
        end(holding.run, holding.attempt, Reason.ORPHANED, {"node": node.name}, actor=f"node {node.name}")


def _was_settled(node: Node, key: Key) -> bool:
    return AttemptNode.objects.filter(
        node=node, attempt__run_id=key[0], attempt__number=key[1], settled_at__isnull=False
    ).exists()


def _stops(report: Report, held: Mapping[Key, Holding], settled: tuple[Key, ...]) -> tuple[StopOrder, ...]:
    """What is to end: canceled, failing or over; and whatever the hub knows nothing of. Only what the report
    names."""
    named = dict.fromkeys((*report.living, *((fact.run, fact.attempt) for fact in report.attempts)))
    orders = []
    for key in named:
        holding = held.get(key)
        order = StopOrder(*key, grace_s=10, why="orphan") if holding is None else holding.stop()
        if order is not None and key not in settled:
            orders.append(order)
    return tuple(orders)
