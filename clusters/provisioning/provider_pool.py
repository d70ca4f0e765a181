"""Runs calls to providers in threads of their own, up to PROVIDER_CALLS at once, so that a provider that
hangs does not block the worker."""

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
    """Runs `work` in a new thread. Returns False if that `name` or the maximum number runs already."""
    with _lock:
        if name in _running or len(_running) >= settings.PROVIDER_CALLS:
            return False
        _running.add(name)
    threading.Thread(target=_run, args=(name, work), name=f"provider-{name}", daemon=True).start()
    return True


def _run(name: str, work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        log.exception("The provider call for machine %s failed; it will be repeated", name)
    finally:
        # Django closes connections at the end of requests and tasks, but not at the end of a plain thread.
        connections.close_all()
        with _lock:
            _running.discard(name)
