"""A folder of the node, such as one on a shared file system."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager, suppress

from trainhub_node.data.input_folders import MISSING, hidden_problem
from trainhub_node.environments.builder_account import end_with_parent
from trainhub_node.stores.target import ByteCounter, HashedFile, HashedPart, StoreFailed
from trainhub_node.supervisor import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PIECE_BYTES = 1024 * 1024
SHARED_MODE = 0o1777
# Neither through a link, nor waiting for whoever writes into a pipe.
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LocalFolder:
    """Used with the rights of the account of the run, which decides what it may do. `base`: the folder of the
    datastore, `path` the one below it; `account` and `hidden`: as in the terms of an attempt.

    Other attempts, and other nodes, may have other accounts. So the folders between `base` and `path` are
    made such that every account may add to them, as /tmp is."""

    # The account of a process is that of all its threads.
    threads = 1

    def __init__(
        self, base: str, path: str, account: dict[str, Any] | None, hidden: list[str], counter: ByteCounter
    ) -> None:
        self._base = base
        self._path = path
        self._account = account
        self.counter = counter
        if account is not None and os.getuid() == 0:
            rank.join_groups(account)
        with self._own_account():
            # It is never made: the disk of a node would fill up where a file server is not mounted.
            if not os.path.isdir(base):
                raise StoreFailed(f"{base} {MISSING}.")
            if problem := hidden_problem(os.path.realpath(base), hidden, is_walked=True):
                raise StoreFailed(f"{base} {problem}.")

    def write(self, name: str, source: int) -> tuple[int, str]:
        path = f"{self._path}/{name}"
        # So that nobody ever sees half of a file.
        aside = f"{path}.{secrets.token_hex(4)}.part"
        file = HashedFile(source, self.counter)
        with self._own_account(), self._explained("write into"):
            try:
                self._make_folders(os.path.dirname(path))
                self._copy(file, aside)
                os.replace(aside, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(aside)
                raise
        return file.size, file.sha256

    def _make_folders(self, path: str) -> None:
        if self._account is not None:
            shared = self._base
            for name in os.path.relpath(os.path.dirname(self._path), self._base).split("/"):
                shared = f"{shared}/{name}"
                with suppress(FileExistsError):
                    os.mkdir(shared)
                    # Not masked, as the mode of a new folder is.
                    os.chmod(shared, SHARED_MODE)
        os.makedirs(path, exist_ok=True)

    def _copy(self, file: HashedFile, path: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            for piece in file.pieces(PIECE_BYTES):
                _write_piece(descriptor, piece)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, name: str, size: int, part: HashedPart) -> None:
        path = f"{self._path}/{name}"
        with self._own_account(), self._explained("read"):
            try:
                source = os.open(path, READ_FLAGS)
            except FileNotFoundError as error:
                raise StoreFailed(f"{path} is not there any more.") from error
        try:
            while piece := os.pread(source, min(PIECE_BYTES, max(0, size - part.size)), part.size):
                part.add(memoryview(piece))
        finally:
            os.close(source)

    def remove(self, name: str, keep: frozenset[str]) -> None:
        with self._own_account(), self._explained("remove files from"), suppress(FileNotFoundError):
            if not any(path.startswith(f"{name}/") for path in keep):
                shutil.rmtree(f"{self._path}/{name}")
                return
            for folder, _, files in os.walk(f"{self._path}/{name}", topdown=False):
                for path in (f"{folder}/{file}" for file in files):
                    if os.path.relpath(path, self._path) not in keep:
                        os.unlink(path)
                with suppress(OSError):
                    # What is not empty has a file that stays.
                    os.rmdir(folder)

    def remove_file(self, name: str) -> None:
        with self._own_account(), self._explained("remove files from"), suppress(FileNotFoundError):
            os.unlink(f"{self._path}/{name}")

    @contextmanager
    def _explained(self, action: str) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            raise StoreFailed(
                f"The account of this run ({_account_words()}) may not {action} {self._path}: give it the "
                "right to, or name another datastore."
            ) from error

    @contextmanager
    def _own_account(self) -> Iterator[None]:
        """What is opened within has the rights of the account of the run."""
        account = self._account
        if account is None or os.getuid() != 0:
            yield
            return
        os.setegid(account["gid"])
        os.seteuid(account["uid"])
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
            # A change of the account has reset this.
            end_with_parent()


def _write_piece(descriptor: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]


def _account_words() -> str:
    return f"user {os.geteuid()}, group {os.getegid()}"
