"""Finds all processes of an attempt, and signals them.

A process belongs to an attempt when it descends from the child, is in the child's session, or has the
attempt's mark in its environment. A program may leave its group and session, may lose its parents (when
they die) and may clear its environment; to escape it must do all of that."""

from __future__ import annotations

import os
import signal

from trainhub_node import proc

# As in /proc/PID/environ: NAME=value. A process keeps them unless it clears its environment, so also daemons
# that left session and group are found.
RUN_MARK = b"TRAINHUB_RUN_ID="
ATTEMPT_MARK = b"TRAINHUB_ATTEMPT="


def attempt_processes(
    run: str, attempt: int, *, session: int, roots: frozenset[int], marks: bool = True, path: str = ""
) -> set[int]:
    """Returns the living processes of the attempt, without the caller and without the `roots` that they
    descend from.

    `path`: the attempt's folder; if given, processes of the same attempt under another agent of this
    machine are excluded."""
    processes = proc.list_processes()
    children: dict[int, list[int]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process.pid)
    # Cheap: the session is in /proc/PID/stat. The marks need a read of each process's environment.
    pids = {one.pid for one in processes if one.session == session}
    if marks:
        marked = {one.pid for one in processes if one.pid not in pids and _is_marked(one.pid, run, attempt)}
        others = {pid for pid in marked if path and _supervises_elsewhere(pid, path)}
        pids |= marked - _with_descendants(others, children)
    return _with_descendants(pids | roots, children) - {os.getpid()} - roots


def _with_descendants(pids: set[int] | frozenset[int], children: dict[int, list[int]]) -> set[int]:
    result = set(pids)
    queue = list(pids)
    while queue:
        new = [pid for pid in children.get(queue.pop(), ()) if pid not in result]
        result |= set(new)
        queue += new
    return result


def _supervises_elsewhere(pid: int, path: str) -> bool:
    """Returns whether the process is the child of an attempt in another folder."""
    argv = (proc.read(f"/proc/{pid}/cmdline") or b"").rstrip(b"\0").split(b"\0")
    return argv[-2:-1] == [b"child"] and argv[-1] != path.encode()


def _is_marked(pid: int, run: str, attempt: int) -> bool:
    variables = (proc.read(f"/proc/{pid}/environ") or b"").split(b"\0")
    return RUN_MARK + run.encode() in variables and ATTEMPT_MARK + str(attempt).encode() in variables


def send_signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
