"""Runs the work of this process for all nodes together, about once a second in one thread, so that a report
needs no query.

Only the web server has such a thread. Elsewhere (tests, shell, worker) `is_running` is False, and callers do
such work at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from workspaces.database import outages
from workspaces.hub_metrics.rounds import measured_round

log = logging.getLogger(__name__)
INTERVAL_S = 1.0
END_WITHIN_S = 2.0
Work = Callable[[], None]
_going: list[BackgroundLoop] = []
_failing: dict[Work, str] = {}


class BackgroundLoop(threading.Thread):
    def __init__(self, work: Sequence[Work]) -> None:
        super().__init__(name="rounds", daemon=True)
        self._work = work
        self._closing = threading.Event()

    def run(self) -> None:
        try:
            self._go()
        finally:
            connections.close_all()

    def _go(self) -> None:
        # Rows must not be written so late that a node looks silent.
        every_s = min(INTERVAL_S, settings.NODE_UNREACHABLE_AFTER / 8)
        while not self._closing.is_set():
            started = time.monotonic()
            run_once(self._work)
            # A round that took long is followed by a pause all the same, so that this thread never runs
            # without one.
            self._closing.wait(max(every_s / 4, every_s - (time.monotonic() - started)))
        # Once more after the end was requested: reports that arrived since the last round are written, too.
        run_once(self._work)

    def close(self) -> None:
        self._closing.set()


def is_running() -> bool:
    return bool(_going)


@contextmanager
def going(*work: Work) -> Iterator[None]:
    """Context manager for the lifespan of a server: runs all of `work` once a second, and once more at the
    end."""
    rounds = BackgroundLoop(work)
    rounds.start()
    _going.append(rounds)
    try:
        yield
    finally:
        # First, so that work which arrives from now on is done at once and not left to a thread that ends.
        _going.remove(rounds)
        rounds.close()
        rounds.join(END_WITHIN_S)


def run_once(work: Sequence[Work]) -> None:
    """Calls each function once; an error in one does not prevent the others. The thread's database connection
    stays open between rounds, because opening one each second costs more than the work. While the database is
    away, it is only tried."""
    if not outages.recover():
        return
    for one in work:
        try:
            with measured_round(f"{one.__module__.rpartition('.')[2]}.{one.__name__}"):
                one()
        except Exception as error:
            # A broken connection is not repaired by Django outside of a request, so the next round opens a
            # new one.
            if isinstance(error, DatabaseError | InterfaceError):
                connections.close_all()
            if outages.outage_of(error) == outages.AWAY:
                outages.look_into_broken_connection()
            _complain(one, error)
            if outages.is_away():
                # The rest would only wait for a connection.
                return
        else:
            if _failing.pop(one, ""):
                log.info("%s does its work again", one.__module__)


def _complain(one: Work, error: Exception) -> None:
    """Logs an error once, not in each round, until it changes: an error that lasts all night must not fill
    the disk."""
    if _failing.get(one) == repr(error):
        return
    _failing[one] = repr(error)
    if isinstance(error, DatabaseError | InterfaceError):
        log.warning(
            "The database does not do what reports need (%s); tried again every second: %s",
            one.__module__,
            error,
        )
    else:
        log.error(
            "%s.%s failed; it is tried again every second", one.__module__, one.__qualname__, exc_info=error
        )
