"""Says that this process lives, and learns which other servers do."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connections

from workspaces.database import outages
from workspaces.servers import server_registry
from workspaces.servers.meetings import MeetingThread
from workspaces.servers.ring import ring
from workspaces.servers.server_registry import OwnProcess, is_shareable

log = logging.getLogger(__name__)
RENEW_EVERY_S = 1.0
# A server whose clock differs by more is given no nodes: it would note wrong times of their reports.
MAX_CLOCK_OFFSET_S = 3.0
END_WITHIN_S = 3.0


class MembershipThread(threading.Thread):
    """A thread of its own: whatever keeps the rounds of a busy server, the others must not take it for
    dead."""

    def __init__(self, own: OwnProcess, on_change: Callable[[], None]) -> None:
        super().__init__(name="membership", daemon=True)
        self.own = own
        self._on_change = on_change
        self._meetings = MeetingThread(own)
        self._closing = threading.Event()
        self._failure = ""
        self._has_wrong_clock = False

    def run(self) -> None:
        self._meetings.start()
        try:
            while not self._closing.wait(RENEW_EVERY_S):
                self.renew_once()
        finally:
            connections.close_all()

    def close(self) -> None:
        self._closing.set()
        self._meetings.close()

    def renew_once(self) -> None:
        # A database that is away is tried past the pool of connections, which would wait for 20 s.
        if not outages.recover():
            return
        try:
            self._renew()
        except (DatabaseError, InterfaceError) as error:
            # A broken connection is not repaired by Django outside of a request.
            connections.close_all()
            if outages.outage_of(error) == outages.AWAY:
                # This thread keeps its connection, so it is the first to notice.
                outages.look_into_broken_connection()
            if not self._failure:
                log.warning("This server cannot say that it lives; tried again every second: %s", error)
            self._failure = repr(error)
        else:
            if self._failure:
                log.info("This server says again that it lives")
            self._failure = ""

    def _renew(self) -> None:
        # Before the query: the others count from when it reached the database, which is later.
        started = time.monotonic()
        offset_s = server_registry.clock_offset_s()
        server_registry.renew_process(self.own, offset_s)
        self._judge_clock(offset_s)
        if self.own.role != server_registry.WEB:
            return
        peers = server_registry.web_peers(max_offset_s=MAX_CLOCK_OFFSET_S)
        ring.update(self.own.id, peers, started)
        self._on_change()

    def _judge_clock(self, offset_s: float) -> None:
        is_wrong = abs(offset_s) > MAX_CLOCK_OFFSET_S
        if is_wrong and not self._has_wrong_clock:
            log.error(
                "The clock of this machine is %s. Have it set by NTP: until then this server answers for no "
                "node while another one can, and starts no periodic task.",
                clock_phrase(offset_s),
            )
        elif self._has_wrong_clock and not is_wrong:
            log.info("The clock of this machine agrees with the database's again")
        self._has_wrong_clock = is_wrong


def clock_phrase(offset_s: float) -> str:
    way = "ahead of" if offset_s > 0 else "behind"
    return f"{abs(offset_s):.0f} s {way} that of the database"


def is_punctual(offset_s: float) -> bool:
    """Returns whether a clock that differs so much from the database's may serve."""
    return abs(offset_s) <= MAX_CLOCK_OFFSET_S


def join_servers(own: OwnProcess, on_change: Callable[[], None] = lambda: None) -> MembershipThread | None:
    """Registers this process and keeps its row young. Returns None, having done nothing, on a database that
    only one machine can use. `on_change` is called in the thread after each look at the others."""
    if not is_shareable():
        return None
    server_registry.register_process(own)
    thread = MembershipThread(own, on_change)
    thread.renew_once()
    thread.start()
    return thread


def leave_servers(thread: MembershipThread | None) -> None:
    """Tells the others at once that this process ends."""
    if thread is None:
        return
    thread.close()
    thread.join(END_WITHIN_S)
    try:
        server_registry.remove_process(thread.own)
    except (DatabaseError, InterfaceError) as error:
        log.warning("The row of this server stays until it is old: %s", error)
