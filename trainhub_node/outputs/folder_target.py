"""Writes outputs into a folder of the node, such as one on a shared file system."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress

from trainhub_node.data.input_folders import MISSING, hidden_problem
from trainhub_node.outputs.target import HashedFile, ReadCounter, WriteFailed
from trainhub_node.supervisor import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PIECE_BYTES = 1024 * 1024


class FolderTarget:
    """Writes with the rights of the account of the run, which decides where it may. `base`: the folder of the
    datastore, `path` below it what is written into; `account` and `hidden`: as in the terms of an attempt."""

    # The account of a process is that of all its threads.
    threads = 1

    def __init__(
        self, base: str, path: str, account: dict[str, Any] | None, hidden: list[str], counter: ReadCounter
    ) -> None:
        self._path = path
        self._account = account
        self._counter = counter
        if account is not None and os.getuid() == 0:
            rank.join_groups(account)
        with self._own_account():
            # It is never made: the disk of a node would fill up where a file server is not mounted.
            if not os.path.isdir(base):
                raise WriteFailed(f"{base} {MISSING}.")
            if problem := hidden_problem(os.path.realpath(base), hidden, is_walked=True):
                raise WriteFailed(f"{base} {problem}.")

    def write(self, name: str, source: int) -> tuple[int, str]:
        path = f"{self._path}/{name}"
        # So that nobody ever sees half of a file.
        aside = f"{path}.{secrets.token_hex(4)}.part"
        file = HashedFile(source, self._counter)
        with self._own_account():
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self._copy(file, aside)
                os.replace(aside, path)
            except PermissionError as error:
                raise WriteFailed(
                    f"The account of this run ({_account_words()}) may not write into {self._path}: give it "
                    "the right to, or name another datastore."
                ) from error
            except BaseException:
                with suppress(OSError):
                    os.unlink(aside)
                raise
        return file.size, file.sha256

    def _copy(self, file: HashedFile, path: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            for piece in file.pieces(PIECE_BYTES):
                view = memoryview(piece)
                while view:
                    view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

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


def _account_words() -> str:
    return f"user {os.geteuid()}, group {os.getegid()}"
