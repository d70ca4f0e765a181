"""The logs of an attempt: their names, their sizes, and their bytes from an offset on."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from itertools import groupby

from trainhub_launch.eventfiles import is_event_file
from trainhub_node.attempts.log_mask import LogMask, changed_spans
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
    def read(self, name: str, offset: int, max_bytes: int, mask: LogMask, *, is_final: bool) -> bytes:
        """Returns up to `max_bytes` bytes of the log from `offset` on, masked; fewer, or none, at its end.
        Unless the log is final, the beginning of a secret at its end is held back until the rest is
        written."""
        is_own = name not in self._user_logs
        if is_own:
            # The masked bytes are written back: also the file on the node shows no secret for long.
            fd = os.open(self._rundir.log(name), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        else:
            try:
                fd = open_run_file(self._rundir.work, name, self._owner)
            except OSError:
                # Removed or replaced: it is no log any more, and the hub must not wait for its bytes.
                self._user_logs.discard(name)
                self._rejected.add(name)
                return b""
        try:
            begin = max(0, offset - mask.overlap)
            length = offset - begin + max_bytes + mask.overlap
            data = os.pread(fd, length, begin)
            masked = mask.mask(data)
            if is_own and masked != data:
                for start, end in changed_spans(data, masked):
                    os.pwrite(fd, masked[start:end], begin + start)
        finally:
            os.close(fd)
        if not is_final and len(data) < length:
            masked = masked[: len(masked) - mask.pending_bytes(masked)]
        return masked[offset - begin : offset - begin + max_bytes]

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
