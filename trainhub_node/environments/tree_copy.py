"""Copies a tree that a builder made into a new one of root's, so that no other process has a file of it
open."""

from __future__ import annotations

import os
import stat

from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_DEPTH = 100
BLOCK = 1024 * 1024


class TreeCopy:
    """Copies one tree.

    `owner`: only files of this user id are copied, because others are hard links; `final`: where the tree was
    made and the copy will be, to which its links may lead; `excluded`: a name at the
    top that is not copied. `check` is called between files and may raise to end the copy; `warn` is called
    with a sentence for everything left out."""

    def __init__(
        self,
        *,
        owner: int,
        python: str,
        final: str,
        excluded: str,
        check: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self._owner = owner
        self._interpreter = os.path.realpath(python)
        self._final = final
        self._excluded = excluded
        self._check = check
        self._warn = warn

    def copy(self, source: str, target: str) -> None:
        """Makes `target`, which every account may read and only this one may write. Raises
        PreparationFailed, and OSError."""
        os.mkdir(target, 0o755)
        # The umask of this process has removed the rights of other accounts from the mode above.
        os.chmod(target, 0o755)  # noqa: S103  # runs must be able to read it
        from_fd, to_fd = os.open(source, FOLDER), os.open(target, FOLDER)
        try:
            self._copy_folder(from_fd, to_fd, "", 0)
        finally:
            os.close(from_fd)
            os.close(to_fd)

    def _copy_folder(self, source: int, target: int, path: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise PreparationFailed(
                "environment",
                f"The environment has folders more than {MAX_DEPTH} deep, which is not supported.",
            )
        with os.scandir(source) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            if not path and name == self._excluded:
                continue
            self._check()
            entry_path = f"{path}/{name}" if path else name
            mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                self._copy_subfolder(source, target, name, entry_path, depth)
            elif stat.S_ISREG(mode):
                self._copy_file(source, target, name, entry_path)
            elif stat.S_ISLNK(mode):
                self._copy_link(source, target, name, entry_path)
            else:
                self._warn(f"{entry_path} is left out of the environment: it is neither a file nor a folder.")

    def _copy_subfolder(self, source: int, target: int, name: str, path: str, depth: int) -> None:
        os.mkdir(name, 0o755, dir_fd=target)
        from_fd, to_fd = os.open(name, FOLDER, dir_fd=source), os.open(name, FOLDER, dir_fd=target)
        try:
            os.fchmod(to_fd, 0o755)
            self._copy_folder(from_fd, to_fd, path, depth + 1)
        finally:
            os.close(from_fd)
            os.close(to_fd)

    def _copy_file(self, source: int, target: int, name: str, path: str) -> None:
        # O_NONBLOCK: a pipe may have taken the name since `stat`, and opening one waits for a writer.
        from_fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=source)
        try:
            facts = os.fstat(from_fd)
            # This process is root: a hard link to a private file would be copied into a tree that everybody
            # may read.
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != self._owner:
                self._warn(f"{path} is left out of the environment: it is a file of another account.")
                return
            to_fd = os.open(
                name,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
                dir_fd=target,
            )
            try:
                _copy_bytes(from_fd, to_fd)
                # Compiled modules record the time of their source: with another time each run would
                # compile them again.
                os.utime(to_fd, ns=(facts.st_atime_ns, facts.st_mtime_ns))
                os.fchmod(to_fd, 0o755 if facts.st_mode & stat.S_IXUSR else 0o644)
            finally:
                os.close(to_fd)
        finally:
            os.close(from_fd)

    def _copy_link(self, source: int, target: int, name: str, path: str) -> None:
        """Copies links inside the environment and the one to the interpreter; others could change after
        the build."""
        link_target = os.readlink(name, dir_fd=source)
        inner = link_target.removeprefix(f"{self._final}/")
        place = os.path.normpath(
            inner if inner != link_target else os.path.join(os.path.dirname(path), link_target)
        )
        is_inside = not os.path.isabs(place) and place.split("/")[0] != ".."
        if is_inside or os.path.realpath(link_target) == self._interpreter:
            os.symlink(link_target, name, dir_fd=target)
        else:
            self._warn(f"{path} is left out of the environment: it is a link that leads out of it.")


def _copy_bytes(source: int, target: int) -> None:
    try:
        while os.copy_file_range(source, target, BLOCK * 64):
            pass  # a file system that can do so shares the blocks
    # Not every pair of file systems supports the call. The copy then begins again at the start of both files.
    except OSError:
        os.lseek(source, 0, os.SEEK_SET)
        os.lseek(target, 0, os.SEEK_SET)
        while block := os.read(source, BLOCK):
            view = memoryview(block)
            while view:
                view = view[os.write(target, view) :]
