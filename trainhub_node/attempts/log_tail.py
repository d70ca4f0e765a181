"""The logs of an attempt: which there are, how long they are, and their bytes from an offset on."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from itertools import groupby

from trainhub_launch.eventfiles import is_event_file
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted import beneath
from trainhub_node.untrusted.run_files import open_inside
from trainhub_node.untrusted.walk import walk

LOOK_FOR_NEW_S = {"logs": 0.5, "outputs": 2.0}
LONGEST_PATH = 900
MOST_USER_LOGS = 200
MOST_EVENT_FILES = 200
MOST_FOLDERS = 2000
"""Below outputs/, where checkpoints of many files may lie; event files in others are read when the run is
over."""


class LogTail:
    """Names are as the hub knows them: `70_driver_log_0.txt`, `logs/<path>` for what a script writes below
    logs/, and `outputs/<path>` for TensorBoard's event files below outputs/, which nobody wants to wait for
    until the end."""

    def __init__(self, rundir: RunDir, owner: int | None = None) -> None:
        self._rundir = rundir
        self._owner = owner
        self._user: set[str] = set()
        self._refused: set[str] = set()
        self._looked_at = dict.fromkeys(LOOK_FOR_NEW_S, 0.0)
        self.too_many = False

    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with os.scandir(self._rundir.logs) as entries:
            for entry in entries:
                found[entry.name] = entry.stat(follow_symlinks=False).st_size
        found |= self._user_sizes()
        return dict(sorted(found.items()))

    def read(self, name: str, offset: int, most: int) -> bytes:
        """Up to `most` bytes; fewer, or none, at the end."""
        if name not in self._user:
            fd = os.open(self._rundir.log(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            try:
                fd = open_inside(self._rundir.work, name, self._owner)
            except OSError:
                # Gone, or not what it was: it is no log any more, and nobody is to wait for its bytes.
                self._user.discard(name)
                self._refused.add(name)
                return b""
        try:
            return os.pread(fd, most, offset)
        finally:
            os.close(fd)

    def look_again(self) -> None:
        self._looked_at = dict.fromkeys(LOOK_FOR_NEW_S, 0.0)

    def _user_sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        try:
            root = beneath.open_root(self._rundir.work)
        except FileNotFoundError:
            return found  # not unpacked yet
        try:
            self._look_for_new(root)
            # The folder of each is opened once, as a rule there is one.
            for folder, names in groupby(sorted(self._user), os.path.dirname):
                found |= _sizes(root, folder, names)
        finally:
            os.close(root)
        return found

    def _look_for_new(self, root: int) -> None:
        now = time.monotonic()
        for part, pause_s in LOOK_FOR_NEW_S.items():
            if now - self._looked_at[part] >= pause_s:
                self._looked_at[part] = now
                self._look(root, part)

    def _look(self, root: int, part: str) -> None:
        events = sum(map(is_event_file, self._user))
        logs = len(self._user) - events
        for name in self._new(root, part):
            if is_event_file(name):
                events += 1
                if events <= MOST_EVENT_FILES:
                    self._user.add(name)
            elif logs >= MOST_USER_LOGS:
                self.too_many = True
                return
            else:
                logs += 1
                self._user.add(name)

    def _new(self, root: int, part: str) -> Iterator[str]:
        """Regular files below that folder that are not known yet; of outputs/ event files alone."""
        for seen, listed in enumerate(walk(root, part, longest_path=LONGEST_PATH)):
            if seen >= MOST_FOLDERS and part == "outputs":
                return
            names = [name for name in listed.files if self._is_new(part, f"{listed.path}/{name}")]
            sizes = _sizes(root, listed.path, [f"{listed.path}/{name}" for name in names]) if names else {}
            yield from sizes

    def _is_new(self, part: str, name: str) -> bool:
        if part == "outputs" and not is_event_file(name):
            return False
        return name not in self._user and name not in self._refused and name.isprintable()


def _sizes(root: int, folder: str, names: Iterable[str]) -> dict[str, int]:
    """Of those `names`, paths below `root` in that `folder`, that are regular files now."""
    found: dict[str, int] = {}
    try:
        fd = beneath.open_folder(root, folder)
    except OSError:
        return found  # the script took it away, or put something else in its place
    try:
        for name in names:
            try:
                facts = os.stat(os.path.basename(name), dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue  # the script took it away again
            if stat.S_ISREG(facts.st_mode):
                found[name] = facts.st_size
    finally:
        os.close(fd)
    return found
