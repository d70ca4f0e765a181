"""Sends reports to the hub: one at a time, the next at once while something waits."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Protocol

from trainhub_launch.machine import Heartbeat
from trainhub_launch.report import MAX_CHUNK_BYTES, Ack, AttemptFact, LogChunk, Report, StopOrder
from trainhub_launch.states import Phase
from trainhub_node.attempts import attempt_list
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.attempts.log_mask import LogMask
from trainhub_node.attempts.tracked_attempt import TrackedAttempt
from trainhub_node.attempts.watch import FileWatch
from trainhub_node.backoff import Backoff
from trainhub_node.intake.rejections import accepts_key
from trainhub_node.link.hub_client import HubClient, HubError, RequestRejected, TokenRejected
from trainhub_node.rundir import RunDir
from trainhub_node.telemetry.heartbeat import has_changed
from trainhub_node.telemetry.telemetry_queue import TelemetryQueue

log = logging.getLogger(__name__)
LIVE_INTERVAL_S = 1.0
# While somebody watches this node, reports follow samples, which vary by some milliseconds.
SAMPLE_JITTER_S = 0.25
MIN_GAP_S = 0.005
# An unbuffered print writes its line and its newline separately, microseconds apart: one message, not two.
NEWLINE_WAIT_S = 0.001
FACTS_DELAY_S = 0.03
LOG_BYTES_PER_REPORT = 4 * MAX_CHUNK_BYTES
MIN_LOG_BYTES = 65536


class AckHandlers(Protocol):
    """The actions that an Ack requests."""

    def resume(self, run: str, attempt: int) -> None: ...
    def stop(self, order: StopOrder) -> None: ...
    def start_daemon(self, key: Key, argv: tuple[str, ...]) -> None: ...
    def collect(self, key: Key, number: int, name: str) -> None: ...
    def settle(self, key: Key) -> None: ...


class UpgradeListener(Protocol):
    """What hears of the hub's answers; see Upgrader."""

    def note_answer(self, ordered: int) -> None: ...
    def note_refusal(self) -> None: ...


class Uplink(threading.Thread):
    """The thread that sends reports. `advance` is called before each report with every tracked attempt,
    `on_settled` after the last report about one. `mask_of`: see TrackedAttempt."""

    def __init__(
        self,
        hub: HubClient,
        attempts: Attempts,
        watch: FileWatch,
        handlers: AckHandlers,
        *,
        heartbeat: Callable[[], Heartbeat],
        telemetry: TelemetryQueue,
        advance: Callable[[TrackedAttempt], None],
        mask_of: Callable[[RunDir], LogMask | None],
        upgrader: UpgradeListener,
        on_settled: Callable[[Key], None],
    ) -> None:
        super().__init__(name="uplink", daemon=True)
        self._hub = hub
        self._attempts = attempts
        self._watch = watch
        self._handlers = handlers
        self._heartbeat = heartbeat
        self._telemetry = telemetry
        self._advance = advance
        self._mask_of = mask_of
        self._upgrader = upgrader
        self._on_settled = on_settled
        self._is_requested = False
        self._agent = secrets.token_hex(8)
        self._sequence = 0
        self._tracked: dict[Key, TrackedAttempt] = {}
        self._interval_s = LIVE_INTERVAL_S
        self._interval_is_for_runs = False
        self._sent_at = 0.0
        self._heartbeat_at = float("-inf")
        self._last_heartbeat: Heartbeat | None = None
        self._changed_since: float | None = None
        self._closing = False
        self._failure = ""
        self._failing_since = 0.0
        self._log_budget = LOG_BYTES_PER_REPORT

    def run(self) -> None:
        backoff = Backoff(max_s=5.0)
        while not self._closing:
            try:
                report = self._gather()
                if report is not None:
                    self._send(report)
                backoff.reset()
                self._wait_for_work(report)
            except HubError as error:
                self._log_failure(error)
                # A rejected token rarely becomes valid again, so the pause is long from the first failure on.
                self._pause(30.0 if isinstance(error, TokenRejected) else backoff.next_s())
            except Exception:
                log.exception("A report failed")
                self._pause(backoff.next_s())

    def report_now(self) -> None:
        """Makes the uplink send a report at once, so that the hub's answer can bring what it has for this
        node."""
        self._is_requested = True
        self._watch.notify()

    def close(self) -> None:
        self._closing = True
        self._watch.notify()

    def _gather(self) -> Report | None:
        """Returns the next report, None if nothing has changed and no heartbeat is due."""
        heartbeat = self._heartbeat()
        # A changed inventory is reported at once, changed measurements with the next heartbeat.
        due = self._is_requested or self._is_due() or has_changed(self._last_heartbeat, heartbeat)
        self._is_requested = False
        facts: list[AttemptFact] = []
        chunks: list[LogChunk] = []
        budget = self._log_budget
        for tracked in self._sync_tracked():
            self._advance(tracked)
            if tracked.lacks_secrets:
                continue
            sizes = tracked.tail.sizes()
            fact = tracked.fact(sizes)
            new_chunks = list(tracked.chunks(sizes, budget))
            budget -= sum(len(chunk.data) for chunk in new_chunks)
            chunks += new_chunks
            # With the last bytes of a log, the fact repeats that these are the last.
            if due or new_chunks or fact != tracked.acknowledged:
                facts.append(fact)
        if not (due or chunks or self._is_urgent(facts) or self._telemetry.has_new_events):
            return None
        self._changed_since = None
        if due:
            self._last_heartbeat, self._heartbeat_at = heartbeat, time.monotonic()
        self._sequence += 1
        return self._telemetry.fill(
            Report(
                agent=self._agent,
                sequence=self._sequence,
                sent_at=time.time(),
                living=tuple(self._tracked),
                heartbeat=heartbeat if due else None,
                attempts=tuple(facts),
                logs=tuple(chunks),
            )
        )

    def _is_urgent(self, facts: list[AttemptFact]) -> bool:
        """Returns whether changed facts are sent now. Facts alone wait a moment, because a start and an end
        change several within milliseconds.

        The end of an attempt, and states that other nodes wait for, do not wait."""
        if not facts:
            return False
        now = time.monotonic()
        self._changed_since = self._changed_since or now
        return now - self._changed_since >= FACTS_DELAY_S or any(
            fact.phase in (Phase.READY, Phase.DONE) or fact.daemons for fact in facts
        )

    def _sync_tracked(self) -> list[TrackedAttempt]:
        """Returns the tracked attempts, in turn: the one that came first last time comes last."""
        folders = {folder.key: folder for folder in self._attempts.all()}
        for key in self._tracked.keys() - folders.keys():
            self._tracked.pop(key).release(self._watch)
            self._on_settled(key)
        for key in folders.keys() - self._tracked.keys():
            owner = attempt_list.read_owner(folders[key])
            self._tracked[key] = TrackedAttempt(folders[key], owner, self._mask_of)
        order = list(self._tracked.items())
        # Otherwise one attempt that writes much could use up the log budget of every report.
        self._tracked = dict(order[1:] + order[:1])
        for tracked in self._tracked.values():
            tracked.watch(self._watch)
        return list(self._tracked.values())

    def _send(self, report: Report) -> None:
        self._sent_at = time.monotonic()
        try:
            ack = self._hub.report(report)
        except RequestRejected:
            # Perhaps the report is too large for a proxy on the way: smaller ones may pass.
            self._log_budget = max(MIN_LOG_BYTES, self._log_budget // 2)
            self._telemetry.on_rejected()
            self._upgrader.note_refusal()
            raise
        self._log_budget = LOG_BYTES_PER_REPORT
        self._interval_s = min(60.0, max(0.05, ack.interval_s))
        self._interval_is_for_runs = bool(report.living)
        if self._failure:
            log.info("The hub answers again, after %.0f s", time.monotonic() - self._failing_since)
            self._failure = ""
        for fact in report.attempts:
            self._tracked[fact.run, fact.attempt].acknowledged = fact
        self._telemetry.on_accepted(ack)
        self._apply(ack)

    def _apply(self, ack: Ack) -> None:
        for run, attempt, name, offset in ack.offsets:
            tracked = (
                self._tracked.get((run, attempt))
                if accepts_key("the offset of a log from the hub", run, attempt)
                else None
            )
            if tracked is not None:
                tracked.next_offsets[name] = offset
        for order in ack.stop:
            if accepts_key("a request to stop from the hub", order.run, order.attempt):
                self._handlers.stop(order)
        for run, attempt in ack.start:
            if accepts_key("a request to start from the hub", run, attempt):
                self._handlers.resume(run, attempt)
        for run, attempt, argv in ack.daemons:
            if accepts_key("a request for an MPI daemon from the hub", run, attempt):
                self._handlers.start_daemon((run, attempt), argv)
        for run, attempt, number, name in ack.checkpoints:
            if accepts_key("a request for a checkpoint from the hub", run, attempt):
                self._handlers.collect((run, attempt), number, name)
        self._upgrader.note_answer(ack.upgrade)
        for key in ack.settled:
            if accepts_key("the end of an attempt from the hub", *key):
                self._handlers.settle(key)

    def _heartbeat_interval(self) -> float:
        """Returns the hub's interval, which is longer with many nodes. An interval that the hub set for an
        idle node is not applied to a busy one."""
        return (
            min(LIVE_INTERVAL_S, self._interval_s)
            if self._tracked and not self._interval_is_for_runs
            else self._interval_s
        )

    def _is_due(self) -> bool:
        elapsed_s = time.monotonic() - self._heartbeat_at
        if not self._telemetry.is_watched:
            return elapsed_s >= self._heartbeat_interval()
        return elapsed_s >= self._heartbeat_interval() + (
            -SAMPLE_JITTER_S if self._telemetry.has_samples else SAMPLE_JITTER_S
        )

    def _wait_for_work(self, report: Report | None) -> None:
        if report is not None and sum(len(chunk.data) for chunk in report.logs) >= MAX_CHUNK_BYTES:
            return
        elapsed_s = time.monotonic() - self._sent_at
        if report is not None and elapsed_s < MIN_GAP_S:
            # During a flood of log lines they are sent together; a single line has already been sent.
            time.sleep(MIN_GAP_S - elapsed_s)
        slack = SAMPLE_JITTER_S if self._telemetry.is_watched else 0.0
        remaining_s = self._heartbeat_interval() + slack - (time.monotonic() - self._heartbeat_at)
        self._watch.wait(remaining_s if self._changed_since is None else min(remaining_s, FACTS_DELAY_S))

    def _pause(self, delay_s: float) -> None:
        """Pauses after a failure. Changes do not shorten the pause; only closing does."""
        end = time.monotonic() + delay_s
        while not self._closing and (remaining_s := end - time.monotonic()) > 0:
            self._watch.wait(remaining_s)
            # While files keep changing, `wait` returns at once, and without this pause the loop would spin.
            time.sleep(min(0.05, remaining_s))

    def _log_failure(self, error: HubError) -> None:
        kind = type(error).__name__
        if isinstance(error, TokenRejected):
            log.error(
                "This node takes no more runs: %s. Its present runs continue, and it keeps trying", error
            )
        elif kind != self._failure:
            log.warning("Cannot report to the hub (%s); runs continue, and reports are retried", error)
        if not self._failure:
            self._failing_since = time.monotonic()
        self._failure = kind
