"""The folder of the hub's disk in which one repository is read, with the credentials for it, for as long as
that takes."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)
PREFIX = "trainhub-repository-"
# Between the making of a folder and its lock.
YOUNG_S = 60.0


@contextmanager
def open_temporary_folder() -> Iterator[Path]:
    """Yields a new folder that only this account may enter. It is locked meanwhile, so that another process
    can tell it from one that a killed hub has left."""
    remove_forgotten_folders()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        lock = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(lock)


def remove_forgotten_folders() -> None:
    """Removes what killed hubs of this account have left: credentials may be in there."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            status = path.lstat()
            is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if is_own and status.st_mtime < time.time() - YOUNG_S and not _is_locked(path):
                shutil.rmtree(path)
        except FileNotFoundError:
            continue  # another process has removed it
        except OSError as error:
            # No reason for a hub not to start; but credentials may stay there.
            log.warning("%s, left by a hub that was killed, cannot be removed: %s", path, error)


def _is_locked(path: Path) -> bool:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(folder)
    return False
