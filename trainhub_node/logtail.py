"""The logs of an attempt: which there are, how long they are, and their bytes from an offset on."""

from __future__ import annotations

import os
import time

from trainhub_node.inside import open_inside
from trainhub_node.rundir import RunDir

LOOK_FOR_NEW_S = 0.5
MOST_USER_LOGS = 200


class LogTail:
    """Names are as the hub shows them: `70_driver_log_0.txt`, and `logs/<path>` for what a script writes below logs/."""

    def __init__(self, rundir: RunDir, owner: int | None = None) -> None:
        self._rundir = rundir
        self._owner = owner
        self._user: dict[str, str] = {}
        self._refused: set[str] = set()
        self._looked_at = 0.0
        self.too_many = False

    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with os.scandir(self._rundir.logs) as entries:
            for entry in entries:
                found[entry.name] = entry.stat(follow_symlinks=False).st_size
        for name, path in self._user_logs().items():
            try:
                found[name] = os.stat(path, follow_symlinks=False).st_size
            except OSError:
                continue  # the script took it away again
        return dict(sorted(found.items()))

    def read(self, name: str, offset: int, most: int) -> bytes:
        """Up to `most` bytes; fewer, or none, at the end."""
        user = self._user.get(name)
        if user is None:
            fd = os.open(self._rundir.log(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            try:
                fd = open_inside(self._rundir.work, user, self._owner)
            except OSError:
                # Gone, or not what it was: it is no log any more, and nobody is to wait for its bytes.
                del self._user[name]
                self._refused.add(name)
                return b""
        try:
            return os.pread(fd, most, offset)
        finally:
            os.close(fd)

    def look_again(self) -> None:
        self._looked_at = 0.0

    def _user_logs(self) -> dict[str, str]:
        now = time.monotonic()
        if now - self._looked_at >= LOOK_FOR_NEW_S:
            self._looked_at = now
            self._look()
        return self._user

    def _look(self) -> None:
        root = f"{self._rundir.work}/logs"
        for folder, _, files in os.walk(root):
            for name in sorted(files):
                path = f"{folder}/{name}"
                shown = f"logs/{path[len(root) + 1 :]}"
                if shown in self._user or shown in self._refused or not shown.isprintable():
                    continue
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                if len(self._user) >= MOST_USER_LOGS:
                    self.too_many = True
                    return
                self._user[shown] = path
