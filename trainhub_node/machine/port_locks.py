"""Which ports the agents of one machine keep for their attempts, told to each other by locked files.

A port is found free some time before a rank listens on it. Two agents on one machine (of two hubs, say) would
find the same one free. A lock ends with the agent that holds it."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Collection
from pathlib import Path

FOLDER_MODE = 0o1777
FILE_MODE = 0o444


class PortLocks:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / "trainhub-ports"
        self._guard = threading.Lock()
        self._files: dict[int, int] = {}
        self._is_closed = False
        self._folder_fd: int | None = None
        try:
            self._folder.mkdir()
            os.fchmod(self._open_folder(), FOLDER_MODE)
        except OSError:
            return  # it is there already, or will be missed: see `take`

    def take(self, port: int) -> bool:
        """Whether the port is ours now. Where files cannot be had nobody can be asked, and it is."""
        with self._guard:
            if self._is_closed or port in self._files:
                return True
            try:
                fd = self._open(port)
            except OSError:
                return True
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(fd)
                return False
            self._files[port] = fd
            return True

    def keep_only(self, ports: Collection[int]) -> None:
        """Let all others go."""
        with self._guard:
            for port in self._files.keys() - set(ports):
                os.close(self._files.pop(port))

    def close(self) -> None:
        """Let all go, and lock nothing any more: a step of an attempt that still runs would keep its port for
        nobody."""
        with self._guard:
            self._is_closed = True
            for fd in self._files.values():
                os.close(fd)
            self._files.clear()
            if self._folder_fd is not None:
                os.close(self._folder_fd)
                self._folder_fd = None

    def _open(self, port: int) -> int:
        folder, name = self._open_folder(), str(port)
        try:
            # Without O_CREAT where it exists: in a folder that all may write to the kernel refuses others'
            # files then. Any account may have made a pipe at this name, which would hold whoever opens it
            # until somebody writes.
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except FileNotFoundError:
            fd = os.open(name, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE, dir_fd=folder)
            os.fchmod(fd, FILE_MODE)
            return fd

    def _open_folder(self) -> int:
        """The folder itself: a link in its place, which anybody may put there before us, would have us make
        files elsewhere. Asked for until it is had, because whoever makes it opens it to others a moment
        later."""
        if self._folder_fd is None:
            self._folder_fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        return self._folder_fd
