"""What this process does for all nodes together, about once a second, in one thread: so that a report costs
nobody a query.

Only the web server has such a thread. Elsewhere (tests, shell, worker) whoever would leave something to it
does it at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

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
        # Rows must not be so far behind that a node looks silent.
        every_s = min(INTERVAL_S, settings.NODE_UNREACHABLE_AFTER / 8)
        while not self._closing.is_set():
            begun = time.monotonic()
            run_once(self._work)
            # One that took long is no reason to hurry with the next.
            self._closing.wait(max(every_s / 4, every_s - (time.monotonic() - begun)))
        run_once(self._work)

    def close(self) -> None:
        self._closing.set()


def is_running() -> bool:
    return bool(_going)


@contextmanager
def going(*work: Work) -> Iterator[None]:
    """In the lifespan of a server: `work` in turn, once a second; what is left is done at its end."""
    rounds = BackgroundLoop(work)
    rounds.start()
    _going.append(rounds)
    try:
        yield
    finally:
        _going.remove(rounds)
        rounds.close()
        rounds.join(END_WITHIN_S)


def run_once(work: Sequence[Work]) -> None:
    """Each once; one that fails keeps none of the others back. The thread's connection stays open from round
    to round: to make one each second costs more than the work."""
    for one in work:
        try:
            one()
        except Exception as error:
            if isinstance(error, DatabaseError | InterfaceError):
                connections.close_all()
            _complain(one, error)
        else:
            if _failing.pop(one, ""):
                log.info("%s does its work again", one.__module__)


def _complain(one: Work, error: Exception) -> None:
    """Once for each trouble: a disk that is full all night must not fill with the same sentence."""
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
