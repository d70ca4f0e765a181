"""Logs invalid messages that the node drops, once for each kind.

A sender of one can send millions, and the log must not grow with them."""

from __future__ import annotations

import logging
import threading

from trainhub_node.rundir import is_key

log = logging.getLogger(__name__)
_logged: set[str] = set()
_guard = threading.Lock()


def accepts_key(source: str, run: object, attempt: object) -> bool:
    """Returns whether the two name an attempt. If not, `source`, a constant phrase, is logged as the kind
    of message dropped."""
    if is_key(run, attempt):
        return True
    reject(source, f"run {run!r:.100} and attempt {attempt!r:.100} do not name an attempt")
    return False


def reject(source: str, reason: str) -> None:
    """Logs that a message of this source was dropped, once for each source."""
    with _guard:
        if source in _logged:
            return
        _logged.add(source)
    log.warning("Dropped %s: %s. Further ones are dropped without a word", source, reason)


def clear_cache() -> None:
    """Makes the next rejection of each source be logged again: for tests, which share a process."""
    with _guard:
        _logged.clear()
