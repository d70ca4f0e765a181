"""What jobs of one account keep on a machine for later ones: environments, packages, sources, data.

An agent must have its cache alone, and several jobs of an account may share a machine: the first one gets the
folder, the others make do with one of their own."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)


@contextmanager
def open_cache(place: str) -> Iterator[Path | None]:
    """Yields this account's folder below `place`, "" = none, locked until the end. Yields None, and says why
    in the log, if another job has it or this account cannot have one there."""
    if not place:
        yield None
        return
    folder = Path(place) / str(os.geteuid())
    try:
        # Everybody may write into `place`: whoever made this folder first must have been this account.
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o077:
            raise PermissionError(0, "it is not a folder of this account alone", str(folder))
        lock = (folder / "lock").open("w")
    except OSError as error:
        log.warning("Nothing is kept for later jobs of this account: %s", error)
        yield None
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("Another job of this account has %s: this one keeps nothing", folder)
            yield None
            return
        yield folder / "cache"
