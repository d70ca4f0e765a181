"""Calls to providers beside the worker's threads: so many at once, and a provider that hangs keeps no launch
waiting."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.conf import settings
from django.db import connections

log = logging.getLogger(__name__)
_lock = threading.Lock()
_running: set[str] = set()


def start(name: str, work: Callable[[], None]) -> bool:
    """Have `work` done in a thread of its own; False where one of that `name`, or as many as may be, run
    already."""
    with _lock:
        if name in _running or len(_running) >= settings.PROVIDER_CALLS:
            return False
        _running.add(name)
    threading.Thread(target=_do, args=(name, work), name=f"provider-{name}", daemon=True).start()
    return True


def _do(name: str, work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        log.exception("The call for machine %s could not be carried through; it is made again", name)
    finally:
        connections.close_all()
        with _lock:
            _running.discard(name)
