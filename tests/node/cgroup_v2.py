"""Control groups of version 2 as the node's tests make and enter them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trainhub_node.isolation import syscalls

ROOT = Path("/sys/fs/cgroup")
NEW_CGROUP_NAMESPACE, NEW_MOUNT_NAMESPACE = 0x02000000, 0x00020000
needs_v2 = pytest.mark.skipif(
    os.geteuid() != 0 or not (ROOT / "cgroup.controllers").exists(),
    reason="needs root on a machine whose control groups are version 2 only (make test-cgroup2)",
)


def enter(group: Path) -> None:
    """Moves this process into the group, and makes it if it does not exist."""
    group.mkdir(parents=True, exist_ok=True)
    (group / "cgroup.procs").write_text("0")


def processes(group: Path) -> list[int]:
    return [int(line) for line in (group / "cgroup.procs").read_text().split()]


@contextmanager
def sleeper(group: Path) -> Iterator[int]:
    """A process in the group."""
    process = subprocess.Popen(["sleep", "600"], preexec_fn=lambda: enter(group))  # noqa: PLW1509
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(10)


def in_group(group: Path, function: Callable[[], object]) -> Any:
    """Returns what the function returns in a process in that group, as JSON carries it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            enter(group)
            os.write(writer, json.dumps(function()).encode())
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


def become_container() -> None:
    """Gives this process the view that a container has: its own group is the outermost one."""
    syscalls.unshare(NEW_CGROUP_NAMESPACE | NEW_MOUNT_NAMESPACE)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_SLAVE)
    subprocess.run(["umount", str(ROOT)], check=True)
    syscalls.mount("cgroup2", str(ROOT), "cgroup2", 0)


def remove_tree(group: Path) -> None:
    """Removes the group with all below it, which have no processes any more."""
    for folder, _, _ in os.walk(group, topdown=False):
        Path(folder).rmdir()
