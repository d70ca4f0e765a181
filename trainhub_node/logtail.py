"""The logs of an attempt: which there are, how long they are, and their bytes from an offset on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from trainhub_launch.eventfiles import is_event_file
from trainhub_node.inside import open_inside
from trainhub_node.rundir import RunDir

LOOK_FOR_NEW_S = {"logs": 0.5, "outputs": 2.0}
MOST_USER_LOGS = 200
MOST_EVENT_FILES = 200
MOST_FOLDERS = 2000
"""Below outputs/, where checkpoints of many files may lie; event files in others are read when the run is over."""


class LogTail:
    """Names are as the hub knows them: `70_driver_log_0.txt`, `logs/<path>` for what a script writes below logs/, and
    `outputs/<path>` for TensorBoard's event files below outputs/, which nobody wants to wait for until the end."""

    def __init__(self, rundir: RunDir, owner: int | None = None) -> None:
        self._rundir = rundir
        self._owner = owner
        self._user: dict[str, str] = {}
        self._refused: set[str] = set()
        self._looked_at = dict.fromkeys(LOOK_FOR_NEW_S, 0.0)
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
        self._looked_at = dict.fromkeys(LOOK_FOR_NEW_S, 0.0)

    def _user_logs(self) -> dict[str, str]:
        now = time.monotonic()
        for part, pause_s in LOOK_FOR_NEW_S.items():
            if now - self._looked_at[part] >= pause_s:
                self._looked_at[part] = now
                self._look(part)
        return self._user

    def _look(self, part: str) -> None:
        events = sum(map(is_event_file, self._user))
        logs = len(self._user) - events
        for name, path in self._new(part):
            if is_event_file(name):
                events += 1
                if events <= MOST_EVENT_FILES:
                    self._user[name] = path
            elif logs >= MOST_USER_LOGS:
                self.too_many = True
                return
            else:
                logs += 1
                self._user[name] = path

    def _new(self, part: str) -> Iterator[tuple[str, str]]:
        """Files below that folder that are not known yet; of outputs/ event files alone."""
        root = f"{self._rundir.work}/{part}"
        for seen, (folder, _, files) in enumerate(os.walk(root)):
            if seen >= MOST_FOLDERS and part == "outputs":
                return
            for file in sorted(files):
                path = f"{folder}/{file}"
                name = f"{part}/{path[len(root) + 1 :]}"
                if part == "outputs" and not is_event_file(name):
                    continue
                if name in self._user or name in self._refused or not name.isprintable():
                    continue
                if os.path.isfile(path) and not os.path.islink(path):
                    yield name, path
