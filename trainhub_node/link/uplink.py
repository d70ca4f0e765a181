"""The one road up: reports, one in flight, the next at once when something waits; without end."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Protocol

from trainhub_launch.machine import Heartbeat
from trainhub_launch.report import MAX_CHUNK_BYTES, READY, Ack, AttemptFact, LogChunk, Report, StopOrder
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.attempts.tracked_attempt import Held
from trainhub_node.attempts.watch import Watch
from trainhub_node.backoff import Backoff
from trainhub_node.intake.rejections import accepts_key
from trainhub_node.link.hub_client import Hub, HubError, Refused, Unwelcome
from trainhub_node.telemetry.heartbeat import has_changed
from trainhub_node.telemetry.telemetry_queue import TelemetryQueue

log = logging.getLogger(__name__)
LIVE_S = 1.0
WATCHED_SLACK_S = 0.25
"""While somebody looks, reports follow samples, which do not come to the millisecond."""
MIN_GAP_S = 0.005
SETTLE_S = 0.001
"""An unbuffered print writes its line and its newline apart, microseconds after one another: one message, not
two."""
FACTS_WAIT_S = 0.03
LOG_BYTES_PER_REPORT = 4 * MAX_CHUNK_BYTES
SEND_UNASKED_BYTES = 65536


class Handlers(Protocol):
    """What an Ack asks for."""

    def start(self, run: str, attempt: int) -> None: ...
    def stop(self, order: StopOrder) -> None: ...
    def start_daemon(self, key: Key, argv: tuple[str, ...]) -> None: ...
    def settle(self, key: Key) -> None: ...


class Uplink(threading.Thread):
    """`tend` is called before each report, with every attempt as it is held. `owner`: see `open_inside`."""

    def __init__(
        self,
        hub: Hub,
        attempts: Attempts,
        watch: Watch,
        handlers: Handlers,
        *,
        heartbeat: Callable[[], Heartbeat],
        feed: TelemetryQueue,
        tend: Callable[[Held], None],
        owner: int | None = None,
    ) -> None:
        super().__init__(name="uplink", daemon=True)
        self._hub = hub
        self._attempts = attempts
        self._watch = watch
        self._handlers = handlers
        self._heartbeat = heartbeat
        self._feed = feed
        self._tend = tend
        self._owner = owner
        self._asked = False
        self._agent = secrets.token_hex(8)
        self._sequence = 0
        self._held: dict[Key, Held] = {}
        self._interval_s = LIVE_S
        self._interval_is_for_live = False
        self._last_sent = 0.0
        self._last_beat = float("-inf")
        self._told: Heartbeat | None = None
        self._news_since: float | None = None
        self._closing = False
        self._trouble = ""
        self._cut_off_at = 0.0
        self._budget = LOG_BYTES_PER_REPORT

    def run(self) -> None:
        backoff = Backoff(most_s=5.0)
        while not self._closing:
            try:
                report = self._gather()
                if report is not None:
                    self._send(report)
                backoff.reset()
                self._rest(report)
            except HubError as error:
                self._complain(error)
                self._pause(30.0 if isinstance(error, Unwelcome) else backoff.next_s())
            except Exception:
                log.exception("A report failed")
                self._pause(backoff.next_s())

    def report_now(self) -> None:
        """The hub wants a word, because it has one for us."""
        self._asked = True
        self._watch.poke()

    def close(self) -> None:
        self._closing = True
        self._watch.poke()

    def _gather(self) -> Report | None:
        """What is to be told now; None when there is nothing and it is not time for a sign of life."""
        beat = self._heartbeat()
        # What the node is, is told at once; how it does, with the next sign of life.
        due = self._asked or self._is_time() or has_changed(self._told, beat)
        self._asked = False
        facts: list[AttemptFact] = []
        chunks: list[LogChunk] = []
        budget = self._budget
        for held in self._current():
            self._tend(held)
            sizes = held.tail.sizes()
            fact = held.fact(sizes)
            sent = list(held.chunks(sizes, budget))
            budget -= sum(len(chunk.data) for chunk in sent)
            chunks += sent
            # Beside its last bytes the fact says again that they are the last.
            if due or sent or fact != held.acknowledged:
                facts.append(fact)
        if not (due or chunks or self._worth_telling(facts) or self._feed.has_new_events):
            return None
        self._news_since = None
        if due:
            self._told, self._last_beat = beat, time.monotonic()
        self._sequence += 1
        return self._feed.fill(
            Report(
                agent=self._agent,
                sequence=self._sequence,
                sent_at=time.time(),
                living=tuple(self._held),
                heartbeat=beat if due else None,
                attempts=tuple(facts),
                logs=tuple(chunks),
            )
        )

    def _worth_telling(self, facts: list[AttemptFact]) -> bool:
        """Facts alone wait a moment: a start and an end bring several within milliseconds. The last word does
        not, and neither does what other nodes wait for."""
        if not facts:
            return False
        now = time.monotonic()
        self._news_since = self._news_since or now
        return now - self._news_since >= FACTS_WAIT_S or any(
            fact.phase in (READY, "done") or fact.daemons for fact in facts
        )

    def _current(self) -> list[Held]:
        """The attempts held now, the one served last time last."""
        folders = {folder.key: folder for folder in self._attempts.all()}
        for key in self._held.keys() - folders.keys():
            self._held.pop(key).release(self._watch)
        for key in folders.keys() - self._held.keys():
            self._held[key] = Held(folders[key], self._owner)
        order = list(self._held.items())
        self._held = dict(order[1:] + order[:1])
        for held in self._held.values():
            held.watch(self._watch)
        return list(self._held.values())

    def _send(self, report: Report) -> None:
        self._last_sent = time.monotonic()
        try:
            ack = self._hub.report(report)
        except Refused:
            # Too large for somebody on the way, perhaps: smaller ones may pass.
            self._budget = max(SEND_UNASKED_BYTES, self._budget // 2)
            self._feed.on_rejected()
            raise
        self._budget = LOG_BYTES_PER_REPORT
        self._interval_s = min(60.0, max(0.05, ack.interval_s))
        self._interval_is_for_live = bool(report.living)
        if self._trouble:
            log.info("The hub answers again, after %.0f s", time.monotonic() - self._cut_off_at)
            self._trouble = ""
        for fact in report.attempts:
            self._held[fact.run, fact.attempt].acknowledged = fact
        self._feed.on_accepted(ack)
        self._obey(ack)

    def _obey(self, ack: Ack) -> None:
        for run, attempt, name, offset in ack.offsets:
            held = (
                self._held.get((run, attempt))
                if accepts_key("the offset of a log from the hub", run, attempt)
                else None
            )
            if held is not None:
                held.wanted[name] = offset
        for order in ack.stop:
            if accepts_key("a request to stop from the hub", order.run, order.attempt):
                self._handlers.stop(order)
        for run, attempt in ack.start:
            if accepts_key("a request to start from the hub", run, attempt):
                self._handlers.start(run, attempt)
        for run, attempt, argv in ack.daemons:
            if accepts_key("a request for an MPI daemon from the hub", run, attempt):
                self._handlers.start_daemon((run, attempt), argv)
        for key in ack.settled:
            if accepts_key("the end of an attempt from the hub", *key):
                self._handlers.settle(key)

    def _pace(self) -> float:
        """The hub's word, which is longer where many nodes talk to it; but one for an idle node does not hold
        for a busy one."""
        return (
            min(LIVE_S, self._interval_s)
            if self._held and not self._interval_is_for_live
            else self._interval_s
        )

    def _is_time(self) -> bool:
        since = time.monotonic() - self._last_beat
        if not self._feed.is_watched:
            return since >= self._pace()
        return since >= self._pace() + (-WATCHED_SLACK_S if self._feed.has_samples else WATCHED_SLACK_S)

    def _rest(self, report: Report | None) -> None:
        if report is not None and sum(len(chunk.data) for chunk in report.logs) >= MAX_CHUNK_BYTES:
            return
        since = time.monotonic() - self._last_sent
        if report is not None and since < MIN_GAP_S:
            # Lines that come at the rate of a flood travel together; one alone has already left.
            time.sleep(MIN_GAP_S - since)
        slack = WATCHED_SLACK_S if self._feed.is_watched else 0.0
        left = self._pace() + slack - (time.monotonic() - self._last_beat)
        self._watch.wait(left if self._news_since is None else min(left, FACTS_WAIT_S))

    def _pause(self, delay_s: float) -> None:
        """After a failure news do not hasten the next try; only closing does."""
        until = time.monotonic() + delay_s
        while not self._closing and (left := until - time.monotonic()) > 0:
            self._watch.wait(left)
            time.sleep(min(0.05, left))

    def _complain(self, error: HubError) -> None:
        kind = type(error).__name__
        if isinstance(error, Unwelcome):
            log.error("This node takes no more runs: %s. Those that it has go on, and it keeps asking", error)
        elif kind != self._trouble:
            log.warning("Cannot report to the hub (%s); runs go on, and this is tried again", error)
        if not self._trouble:
            self._cut_off_at = time.monotonic()
        self._trouble = kind
