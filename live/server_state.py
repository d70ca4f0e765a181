"""Whether this process's web server is stopping, for requests that wait for something."""

from __future__ import annotations

import threading

_stop = threading.Event()


def begin_stop() -> None:
    """Called by the server before it waits for the requests that it still answers."""
    _stop.set()


def is_stopping() -> bool:
    """Returns whether requests should be answered as soon as possible."""
    return _stop.is_set()
