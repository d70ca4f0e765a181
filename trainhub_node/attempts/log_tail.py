"""The logs of an attempt: their names, their sizes, and their bytes from an offset on."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from itertools import groupby

from trainhub_launch.eventfiles import is_event_file
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted import beneath
from trainhub_node.untrusted.run_files import open_run_file
from trainhub_node.untrusted.walk import walk_beneath

# The hub's pages show logs; event files only feed curves, and outputs/ may be large.
SCAN_INTERVAL_S = {"logs": 0.5, "outputs": 2.0}
MAX_PATH = 900
MAX_USER_LOGS = 200
MAX_EVENT_FILES = 200
# Limit below outputs/, where checkpoints may have many files. Event files in further folders are uploaded
# when the run is over.
MAX_FOLDERS = 2000


class LogTail:
    """Finds and reads the logs of one attempt. Names are those that the hub knows: `70_driver_log_0.txt`,
    `logs/<path>` for files that a script writes below logs/, and `outputs/<path>` for TensorBoard event files
    below outputs/, which are followed live, too."""

    def __init__(self, rundir: RunDir, owner: int | None = None) -> None:
        self._rundir = rundir
        self._owner = owner
        self._user_logs: set[str] = set()
        self._rejected: set[str] = set()
        self._scanned_at = dict.fromkeys(SCAN_INTERVAL_S, 0.0)
        self.has_too_many = False

    def sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        with os.scandir(self._rundir.logs) as entries:
            for entry in entries:
                sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
        sizes |= self._user_sizes()
        return dict(sorted(sizes.items()))

    # Each log is opened anew for each read: a rotated or replaced file is noticed, and no descriptors pile
    # up.
    def read(self, name: str, offset: int, max_bytes: int) -> bytes:
        """Returns up to `max_bytes` bytes of the log from `offset` on; fewer, or none, at its end."""
        if name not in self._user_logs:
            fd = os.open(self._rundir.log(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            try:
                fd = open_run_file(self._rundir.work, name, self._owner)
            except OSError:
                # Removed or replaced: it is no log any more, and the hub must not wait for its bytes.
                self._user_logs.discard(name)
                self._rejected.add(name)
                return b""
        try:
            return os.pread(fd, max_bytes, offset)
        finally:
            os.close(fd)

    def rescan(self) -> None:
        self._scanned_at = dict.fromkeys(SCAN_INTERVAL_S, 0.0)

    def _user_sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        try:
            root = beneath.open_root(self._rundir.work)
        except FileNotFoundError:
            return sizes  # not unpacked yet
        try:
            self._scan_if_due(root)
            # Each folder is opened once for all its logs; usually there is only one.
            for folder, names in groupby(sorted(self._user_logs), os.path.dirname):
                sizes |= _sizes(root, folder, names)
        finally:
            os.close(root)
        return sizes

    def _scan_if_due(self, root: int) -> None:
        now = time.monotonic()
        for part, pause_s in SCAN_INTERVAL_S.items():
            if now - self._scanned_at[part] >= pause_s:
                self._scanned_at[part] = now
                self._scan(root, part)

    def _scan(self, root: int, part: str) -> None:
        events = sum(map(is_event_file, self._user_logs))
        logs = len(self._user_logs) - events
        for name in self._new_files(root, part):
            if is_event_file(name):
                events += 1
                if events <= MAX_EVENT_FILES:
                    self._user_logs.add(name)
            elif logs >= MAX_USER_LOGS:
                self.has_too_many = True
                return
            else:
                logs += 1
                self._user_logs.add(name)

    def _new_files(self, root: int, part: str) -> Iterator[str]:
        """Yields regular files below that folder that are not known yet; below outputs/ only event files."""
        for count, folder in enumerate(walk_beneath(root, part, max_path=MAX_PATH)):
            if count >= MAX_FOLDERS and part == "outputs":
                return
            names = [name for name in folder.files if self._is_new(part, f"{folder.path}/{name}")]
            sizes = _sizes(root, folder.path, [f"{folder.path}/{name}" for name in names]) if names else {}
            yield from sizes

    def _is_new(self, part: str, name: str) -> bool:
        if part == "outputs" and not is_event_file(name):
            return False
        return name not in self._user_logs and name not in self._rejected and name.isprintable()


def _sizes(root: int, folder: str, names: Iterable[str]) -> dict[str, int]:
    """Returns the sizes of those of `names`, paths below `root` in `folder`, that are regular files now."""
    sizes: dict[str, int] = {}
    try:
        fd = beneath.open_folder(root, folder)
    except OSError:
        return sizes  # the script has removed or replaced it
    try:
        for name in names:
            try:
                status = os.stat(os.path.basename(name), dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue  # the script has removed it again
            if stat.S_ISREG(status.st_mode):
                sizes[name] = status.st_size
    finally:
        os.close(fd)
    return sizes
