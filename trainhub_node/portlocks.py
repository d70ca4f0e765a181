"""Which ports the agents of one machine keep for their attempts, told to each other by locked files.

A port is found free some time before a rank listens on it. Two agents on one machine (of two hubs, say) would find the
same one free. A lock ends with the agent that holds it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Collection
from pathlib import Path

EVERYBODY_MAY_MAKE_FILES = 0o1777
EVERYBODY_MAY_READ = 0o444


class PortLocks:
    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / "trainhub-ports"
        self._guard = threading.Lock()
        self._files: dict[int, int] = {}
        try:
            self._folder.mkdir()
            self._folder.chmod(EVERYBODY_MAY_MAKE_FILES)
        except OSError:
            return  # it is there already, or will be missed: see `take`

    def take(self, port: int) -> bool:
        """Whether the port is ours now. Where files cannot be had nobody can be asked, and it is."""
        with self._guard:
            if port in self._files:
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

    def _open(self, port: int) -> int:
        path = self._folder / str(port)
        try:
            # Without O_CREAT where it exists: in a folder that all may write to the kernel refuses others' files then.
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, EVERYBODY_MAY_READ)
            os.fchmod(fd, EVERYBODY_MAY_READ)
            return fd
