"""What a run sees of the cache: a folder of its own with the files of an input."""

from __future__ import annotations

import errno
import os
import shutil

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.errors import DataError
from trainhub_node.data.remote_file import RemoteFile
from trainhub_node.untrusted import removal

UNFINISHED = ".unfinished"
COPY_BYTES = 64 * 1024 * 1024
# Of one file, on most file systems; then a copy is made.
TOO_MANY_LINKS = errno.EMLINK


class Tree:
    """The folder `target` while it is filled; a run sees it once it is finished. What is in it stays in the
    cache. `copies`: the run could change what is linked, because it has the agent's account and no
    namespaces. `group`: that of the run's account, which alone can enter; None for the agent's. `owner`: the
    run's account, if it may make files in the folders, which an overlay keeps apart; else None. Files are
    added from several threads. Raises OSError."""

    def __init__(
        self, cache: DataCache, target: str, *, copies: bool, group: int | None, owner: int | None
    ) -> None:
        self._cache = cache
        self._target = target
        self._aside = f"{target}{UNFINISHED}"
        self._copies = copies
        self._owner = owner
        attempt = os.path.dirname(target)
        os.makedirs(attempt, mode=0o700, exist_ok=True)
        for path in (self._aside, target):
            # Of an earlier child of this attempt.
            removal.remove_tree(path)
        if group is not None:
            os.chown(attempt, -1, group)
            os.chmod(attempt, 0o750)  # noqa: S103 - the group is the run's own
        os.mkdir(self._aside)
        self._own(self._aside)
        self._folders = {self._aside}
        # Whether the cache had the last file that was asked for.
        self._had_last = False

    def add(self, file: RemoteFile) -> bool:
        """As `link`, for a file that the cache may lack: an error costs several times as much as a question.
        Most often the cache has all files, or none."""
        self._had_last = (self._had_last or self._cache.has(file.identity)) and self.link(file)
        return self._had_last

    def link(self, file: RemoteFile) -> bool:
        """Returns whether the cache has the file, which is in the folder then. Raises DataError for names
        that the disk does not tell apart."""
        source, path = self._cache.name(file.identity), f"{self._aside}/{file.path}"
        self._make_folder(path.rpartition("/")[0])
        try:
            self._place(source, path)
        except FileNotFoundError:
            return False
        except FileExistsError as error:
            raise DataError(
                f"The disk of this node takes {file.path} and another file for the same, because they differ "
                "only in capital letters or accents: rename one, or ask for a cache on another file system."
            ) from error
        return True

    def _make_folder(self, folder: str) -> None:
        if folder in self._folders:
            return
        self._make_folder(os.path.dirname(folder))
        try:
            os.mkdir(folder)
            self._own(folder)
        except FileExistsError:
            # Another thread may have made it.
            if not os.path.isdir(folder):
                raise
        self._folders.add(folder)

    def _own(self, folder: str) -> None:
        if self._owner is not None:
            os.chown(folder, self._owner, -1)

    def finish(self) -> None:
        os.rename(self._aside, self._target)

    def _place(self, source: str, path: str) -> None:
        if not self._copies:
            try:
                os.link(source, path)
            except OSError as error:
                if error.errno != TOO_MANY_LINKS:
                    raise
            else:
                return
        with open(source, "rb") as original, open(path, "xb") as copy:
            while os.copy_file_range(original.fileno(), copy.fileno(), COPY_BYTES):
                pass
        shutil.copystat(source, path)
