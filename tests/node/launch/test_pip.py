"""Ending pip in the middle of a build."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from trainhub_node.environments import process_wait
from trainhub_node.proc import list_processes

# Ends at SIGTERM; its child, as a compiler may, ignores it.
BUILD = """
import os, signal, sys, time
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(600)
time.sleep(600)
"""


def test_ends_a_child_that_ignores_the_first_signal(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    # `end_group` waits for it by its id, as the supervisor does.
    pid = subprocess.Popen([sys.executable, "-c", BUILD, str(note)], process_group=0).pid
    while not (note.exists() and note.read_text()):
        time.sleep(0.01)
    # Blocked as in the supervisor, which waits for it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        process_wait.end_group(pid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    child = int(note.read_text())
    deadline = time.monotonic() + 30
    while child in {process.pid for process in list_processes()} and time.monotonic() < deadline:
        time.sleep(0.01)
    assert child not in {process.pid for process in list_processes()}
