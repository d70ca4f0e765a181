"""Ports that the agents of one machine reserve for their attempts, shared through locked files.

A port is chosen some time before a rank listens on it. Two agents on one machine (of two hubs, say) would
choose the same one. A lock ends with the agent that holds it."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Collection
from pathlib import Path

# Like /tmp: every account may make lock files here, and none may remove another's. Read access is enough for
# flock.
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
            return  # it exists already, or cannot be made: see `acquire`

    def acquire(self, port: int) -> bool:
        """Returns whether the port is ours now. Without access to lock files it always is."""
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

    def release_others(self, ports: Collection[int]) -> None:
        """Releases all ports except these."""
        with self._guard:
            for port in self._files.keys() - set(ports):
                os.close(self._files.pop(port))

    def close(self) -> None:
        """Releases all ports, and locks none afterwards: no other step would release them."""
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
            # Without O_CREAT where it exists: with it, the kernel refuses other accounts' files in a
            # sticky folder. O_NONBLOCK, because any account may have made a pipe with this name,
            # and opening one blocks until a writer comes.
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except FileNotFoundError:
            fd = os.open(name, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE, dir_fd=folder)
            os.fchmod(fd, FILE_MODE)
            return fd

    def _open_folder(self) -> int:
        """Returns a descriptor of the lock folder. It is never opened through a link, because any account may
        put one in its place and so make us create files elsewhere.

        Opening is retried at each use, because another agent may open the folder to all accounts a moment
        after making it."""
        if self._folder_fd is None:
            self._folder_fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        return self._folder_fd
