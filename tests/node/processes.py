"""Processes as the node's tests watch and end them."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.node.hub import Key
from trainhub_node.attempts import termination
from trainhub_node.isolation import network_rules

NO_SESSION = -1


def remaining_processes(key: Key) -> set[int]:
    """Living processes that carry the attempt's mark, and their descendants."""
    return termination.attempt_processes(*key, session=NO_SESSION, roots=frozenset())


def child_pid(attempts: Path, key: Key) -> int:
    return int(json.loads((attempts / f"{key[0]}-{key[1]}" / "child.json").read_text())["pid"])


def wait_for_exit(attempts: Path, key: Key, timeout_s: float = 15) -> None:
    """Until the attempt's child has ended."""
    wait_pid(child_pid(attempts, key), timeout_s)


def wait_pid(pid: int, timeout_s: float = 15) -> None:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], timeout_s)[0], f"process {pid} still lives after {timeout_s} s"
    finally:
        os.close(fd)


def forget_rules(agent: str) -> None:
    """Removes the rules of the packet filter that a killed agent has left: the next test may get the same
    ports."""
    if os.geteuid() == 0 and shutil.which(network_rules.NFT, path=network_rules.PATH):
        network_rules.remove_table(network_rules.table_name(agent))


@contextmanager
def agent_process(env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """An agent in a process of its own, killed at the end if it still lives."""
    process = subprocess.Popen(
        [sys.executable, "-m", "trainhub_node", "run"], env=dict(env), start_new_session=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        forget_rules(f"{env['TRAINHUB_NODE_NAME']} {env['TRAINHUB_NODE_DIR']}")
