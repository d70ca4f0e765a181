"""Parts for attacks on a node's agent that runs as root: an account of the runs, and a hostile process of
that account."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trainhub_node.run_account import Account

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only a root agent gives runs an account of their own"
)


def nobody() -> Account:
    found = pwd.getpwnam("nobody")
    return Account(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir)


def become(account: Account) -> None:
    os.setgroups([])
    os.setgid(account.gid)
    os.setuid(account.uid)


@contextmanager
def hostile_process(account: Account, attack: Callable[[], None]) -> Iterator[int]:
    """A process of `account` that repeats `attack` as fast as it can until the end of the block."""
    pid = os.fork()
    if pid == 0:
        try:
            become(account)
            while True:
                attack()
        finally:
            os._exit(1)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def as_account(account: Account, action: Callable[[], None]) -> int:
    """Runs `action` in a process of `account`; returns 0, or 1 where it raised an exception."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            become(account)
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def owners(folder: Path) -> set[int]:
    """The owners of everything below `folder`, links not followed."""
    return {path.lstat().st_uid for path in folder.rglob("*")}
