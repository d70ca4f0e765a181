"""Waits until a file of a living attempt changes or another thread calls `notify`; waiting takes no CPU."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import select
import stat
import threading

log = logging.getLogger(__name__)
# From <sys/inotify.h>.
IN_MODIFY, IN_MOVED_TO, IN_CREATE = 0x2, 0x80, 0x100
IN_ONLYDIR, IN_DONT_FOLLOW = 0x1000000, 0x2000000
# The folder is missing, or the run has put something else in its place: neither is a fault of the machine.
NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
IN_NONBLOCK, IN_CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
# A reader of the live log notices no delay up to about two frames of a screen.
POLL_S = 0.015
EVENT_BYTES = 65536


class FileWatch:
    """Watches folders with Linux inotify. Where the machine's inotify limits are exhausted, `wait` polls
    instead, which takes some CPU."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = self._libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC)
        self._notification = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # A number that is closed may be another file's by the time that a thread writes to it.
        self._lock = threading.Lock()
        self._is_closed = False
        self._watches: dict[str, int] = {}
        self._unwatched: set[str] = set()
        self._poll = select.poll()
        self._poll.register(self._notification, select.POLLIN)
        if self._inotify >= 0:
            self._poll.register(self._inotify, select.POLLIN)

    def add(self, folder: str) -> None:
        """Wakes `wait` when a file in `folder` is written, made or moved in. Repeated calls and missing
        folders have no effect."""
        if folder in self._watches or folder in self._unwatched or not stat.S_ISDIR(_mode(folder)):
            return
        # Some of these folders belong to the run, which may replace them by links.
        mask = IN_MODIFY | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR | IN_DONT_FOLLOW
        handle = (
            -1
            if self._inotify < 0
            else self._libc.inotify_add_watch(self._inotify, os.fsencode(folder), mask)
        )
        if handle < 0 and self._inotify >= 0 and ctypes.get_errno() in NO_FOLDER:
            return
        if handle < 0:
            log.warning("Cannot watch %s (%s); it is polled", folder, os.strerror(ctypes.get_errno()))
            self._unwatched.add(folder)
        else:
            self._watches[folder] = handle

    def remove(self, folder: str) -> None:
        self._unwatched.discard(folder)
        handle = self._watches.pop(folder, None)
        if handle is not None:
            self._libc.inotify_rm_watch(self._inotify, handle)

    def notify(self) -> None:
        """Ends the present or the next `wait`; may be called from any thread, also after `close`."""
        with self._lock:
            if not self._is_closed:
                os.eventfd_write(self._notification, 1)

    def wait(self, timeout_s: float) -> bool:
        """Returns whether something happened before `timeout_s`."""
        if self._unwatched:
            timeout_s = min(timeout_s, POLL_S)
        ready = self._poll.poll(max(0.0, timeout_s) * 1000)
        for fd, _ in ready:
            _drain(fd)
        return bool(ready) or bool(self._unwatched)

    def close(self) -> None:
        """May be called when no thread waits any more."""
        with self._lock:
            self._is_closed = True
            os.close(self._notification)
            if self._inotify >= 0:
                os.close(self._inotify)


def _mode(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_mode
    except OSError:
        return 0


def _drain(fd: int) -> None:
    try:
        # All events are discarded: what changed is found by looking at the files.
        while os.read(fd, EVENT_BYTES):
            pass
    except BlockingIOError:
        return
