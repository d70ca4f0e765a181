"""The child, first half: prepares one attempt and starts its ranks; `supervise` is the second half.

One process per attempt, detached, in a session of its own: it survives the agent, the worker and the hub."""

from __future__ import annotations

import fcntl
import os
import time

from trainhub_launch.json_types import JsonValue
from trainhub_node import proc, records
from trainhub_node.environments import interpreter
from trainhub_node.rundir import RunDir
from trainhub_node.supervisor import rank, stop_notices, variables
from trainhub_node.supervisor.gang import Gang

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import Any, NoReturn
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

POLL_S = 1.0
# Blocked in this process and its forks, and taken with sigtimedwait: so none is lost between a check and the
# wait, and no handler runs in the middle of a write. The wrappers unblock them before they become the rank.
SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)


def prepare_gang(path: str) -> Gang:
    """Locks the attempt and prepares its environment. The gang has failed or has an interpreter, unless
    one must be built."""
    folder = RunDir.at(path)
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    # The lock is held until this process ends, however it ends, because the kernel releases it. The agent
    # sees by it whether a child lives, also one of an agent that was killed.
    lock = _lock_or_exit(folder)
    me = os.getpid()
    # A process id alone is reused by the kernel; with the start time as its identity it names this process
    # only.
    records.write(folder.child, {"pid": me, "identity": proc.identity(me)})
    gang = Gang(folder, records.read(folder.order), records.read(folder.terms))
    gang.locks.append(lock)
    gang.secrets = _read_secrets()
    gang.enter("preparing")
    gang.run_step(_prepare_environment)
    return gang


def _read_secrets() -> dict[str, str]:
    """Returns the values that the agent passes on standard input, and closes it for all later processes."""
    pieces = []
    while piece := os.read(0, 65536):
        pieces.append(piece)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    content = b"".join(pieces)
    return dict(records.loads(content)) if content else {}  # type: ignore[call-overload]


def _lock_or_exit(folder: RunDir) -> int:
    """Locks the attempt. A second child (two agents for a moment) exits silently."""
    fd = os.open(folder.child_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os._exit(0)
    return fd


def _prepare_environment(gang: Gang) -> None:
    gang.check_stop()
    stop_notices.make_folder(gang.folder)
    gang.python = interpreter.prepare_interpreter(gang)


def wait_for_record(gang: Gang, path: str) -> dict[str, Any]:
    """Returns the record at `path`, once the agent has written it and signalled this process. Raises
    StopRequested."""
    while True:
        gang.check_stop()
        record: dict[str, object] | None = records.read(path)
        if record is not None:
            return record
        # The agent's signal ends the wait early. The timeout is for an agent that died after writing and
        # before signalling.
        signal.sigtimedwait(SIGNALS, POLL_S)


def start_ranks(gang: Gang) -> None:
    ranks = start_records(gang)
    gang.check_stop()
    for start in ranks:
        gang.wrappers[_fork_wrapper(gang, start)] = start["rank"]
    enter_running(gang)


def start_records(gang: Gang) -> list[dict[str, Any]]:
    """Returns how each rank of this node is started, as its wrapper reads it."""
    return [_start_record(gang, process, gang.python) for process in gang.processes]


def enter_running(gang: Gang) -> None:
    gang.enter("running")
    gang.running_since = time.monotonic()


def _start_record(gang: Gang, process: Mapping[str, Any], python: str) -> dict[str, object]:
    image = gang.order["environment"]["image"]["reference"] if gang.uses_image else ""
    place = {"place": f"in the image {image}"} if image else {}
    return place | {
        "rank": process["rank"],
        "argv": process["argv"],
        "log": process["log_name"],
        "python": python,
        "env": variables.process_environment(gang, process["env"], python),
        "cwd": gang.folder.work,
        "account": gang.terms["account"],
    }


def _fork_wrapper(gang: Gang, start: Mapping[str, JsonValue]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            # After a fork in a process with open sockets and buffers nothing may return into the parent's
            # code: an exception that climbed up here would run it twice.
            rank.run(gang.folder, start, gang.namespaces, gang.group)
        except BaseException as error:
            die(gang, f"rank {start['rank']} could not be started: {error!r}")
    return pid


def die(gang: Gang, sentence: str) -> NoReturn:
    try:
        gang.log(sentence)
    finally:
        os._exit(rank.CANNOT_RUN)
