"""Notices which entries of a folder got their names by a rename: programs that write elsewhere first do that
when a file is whole."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import threading
import time

from trainhub_node.untrusted import beneath

# From <sys/inotify.h>.
IN_MODIFY, IN_MOVED_TO, IN_Q_OVERFLOW, IN_ONLYDIR = 0x2, 0x80, 0x4000, 0x1000000
IN_NONBLOCK, IN_CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
EVENT = struct.Struct("iIII")
READ_BYTES = 65536
MAX_NAMES = 1000


class RenameWatch:
    """Watches one folder below `work`, as soon as it is there. Where the machine has no inotify left, nothing
    is noticed."""

    def __init__(self, work: str, folder: str) -> None:
        self._work = work
        self._folder = folder
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = self._libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC)
        self._watched = (0, 0)
        # A descriptor that is closed while another thread reads it may be another file's by then.
        self._lock = threading.Lock()
        self.renames: dict[str, tuple[int, float]] = {}

    def look(self) -> None:
        """Brings `renames` up to date: name -> inode, and the time (Unix seconds) up to which its files may
        have been changed before."""
        with self._lock:
            if self._inotify >= 0:
                self._look()

    def close(self) -> None:
        """Notices nothing from now on. Each watch that stays open is one of the few that an account may
        have."""
        with self._lock:
            if self._inotify >= 0:
                os.close(self._inotify)
                self._inotify = -1

    def _look(self) -> None:
        try:
            folder = self._open()
        except OSError:
            return
        try:
            self._watch(folder)
            for name, mask in self._events():
                if mask & IN_Q_OVERFLOW:
                    self.renames.clear()
                elif mask & IN_MODIFY:
                    # Written to under its final name: nobody can tell when that is over.
                    self.renames.pop(name, None)
                else:
                    self._note(folder, name)
        finally:
            os.close(folder)

    def _open(self) -> int:
        root = beneath.open_root(self._work)
        try:
            return beneath.open_folder(root, self._folder)
        finally:
            os.close(root)

    def _watch(self, folder: int) -> None:
        status = os.fstat(folder)
        if self._watched != (status.st_dev, status.st_ino):
            # By its descriptor: the run may put a link in the folder's place meanwhile.
            path = f"/proc/self/fd/{folder}".encode()
            if self._libc.inotify_add_watch(self._inotify, path, IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR) >= 0:
                self._watched = (status.st_dev, status.st_ino)

    def _events(self) -> list[tuple[str, int]]:
        events: list[tuple[str, int]] = []
        try:
            while data := os.read(self._inotify, READ_BYTES):
                events += _parse(data)
        except BlockingIOError:
            pass
        return events

    def _note(self, folder: int, name: str) -> None:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return  # moved on already
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            self.renames.pop(name, None)
            if len(self.renames) >= MAX_NAMES:
                del self.renames[next(iter(self.renames))]
            self.renames[name] = (status.st_ino, time.time())


def _parse(data: bytes) -> list[tuple[str, int]]:
    """Returns name and mask of each event."""
    events, at = [], 0
    while at + EVENT.size <= len(data):
        _, mask, _, length = EVENT.unpack_from(data, at)
        at += EVENT.size
        events.append((os.fsdecode(data[at : at + length].rstrip(b"\0")), mask))
        at += length
    return events
