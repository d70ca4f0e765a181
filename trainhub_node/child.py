"""The child, first half: prepares one attempt and starts its ranks; `keeping` is the second.

Detached, in a session of its own, one per attempt: the agent, the worker and the hub may all die.
"""

from __future__ import annotations

import fcntl
import os
import time

from trainhub_node import environments, proc, rank, records, variables
from trainhub_node.gang import Gang, Refused, Stopped
from trainhub_node.rundir import LAUNCHER_LOG, RunDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import Any, NoReturn
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

RANK_WRAPPER = "{rank}"  # trainhub_launch.plan.RANK_WRAPPER; a test holds the two together, as importing it costs 20 ms
SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP)
MAY_BE_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def start(path: str) -> Gang:
    """Everything up to the ranks' start. What fails on the way is in the state, never raised."""
    folder = RunDir.at(path)
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    lock = _only_child(folder)
    me = os.getpid()
    records.write(folder.child, {"pid": me, "identity": proc.identity(me)})
    gang = Gang(folder, records.read(folder.order), records.read(folder.terms))
    gang.locks.append(lock)
    gang.enter("preparing")
    try:
        gang.check_stop()
        _start_ranks(gang, environments.prepare(gang))
    except Refused as refused:
        gang.refuse(refused)
    except Stopped:
        gang.note("Stopped before the processes were started.")
        gang.save()
    return gang


def _only_child(folder: RunDir) -> int:
    """A second child of the same attempt (two agents for a moment) leaves without a trace."""
    fd = os.open(folder.child_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os._exit(0)
    return fd


def _start_ranks(gang: Gang, python: str) -> None:
    starts = [_start(gang, process, python) for process in gang.processes]
    gang.check_stop()
    if gang.order["command"]["launcher"]:
        _start_launcher(gang, starts, python)
    else:
        for one in starts:
            gang.wrappers[_fork_wrapper(gang, one)] = one["rank"]
    gang.enter("running")
    gang.running_since = time.monotonic()


def _start(gang: Gang, process: Mapping[str, Any], python: str) -> dict[str, Any]:
    return {
        "rank": process["rank"], "argv": process["argv"], "log": process["log_name"], "python": python,
        "env": variables.of_process(gang, process["env"], python), "cwd": gang.folder.work,
        "account": gang.terms["account"],
    }


def _fork_wrapper(gang: Gang, one: Mapping[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            rank.run(gang.folder, one)
        except BaseException as error:
            _die(gang, f"rank {one['rank']} could not be started: {error!r}")
    return pid


def _start_launcher(gang: Gang, starts: list[dict[str, Any]], python: str) -> None:
    """mpirun starts the wrappers, as the account of the ranks: Open MPI lets them talk to no one else's."""
    folder, account = gang.folder, gang.terms["account"]
    env = variables.of_process(gang, gang.order["command"]["launcher_env"], python)
    # A user's own site may not come between mpirun and the wrapper.
    env.pop("PYTHONPATH", None)
    env = {**MAY_BE_ROOT, **env}
    argv = list(gang.order["command"]["launcher"])
    program = variables.find(argv[0], env["PATH"])
    if program is None:
        raise Refused("launch", f"{argv[0]} is not on this node; install Open MPI (Debian: openmpi-bin).")
    wrapper = [*gang.terms["wrapper"], "rank", folder.path]
    argv = [part for item in argv for part in (wrapper if item == RANK_WRAPPER else [item])]
    records.write(folder.starts, {str(one["rank"]): one for one in starts})
    for one in starts:
        os.close(os.open(folder.log(one["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    if account is not None:
        _give_to(account, [folder.ranks, folder.starts, *(folder.log(one["log"]) for one in starts)])
    gang.launcher = os.fork()
    if gang.launcher == 0:
        try:
            _become_launcher(folder, account, program, argv, env)
        except BaseException as error:
            _die(gang, f"{program} could not be started: {error!r}")


def _become_launcher(
    folder: RunDir, account: Mapping[str, Any] | None, program: str, argv: list[str], env: dict[str, str]
) -> NoReturn:
    log = os.open(folder.log(LAUNCHER_LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    rank.attach(log)
    rank.drop_to(account)
    os.setpgid(0, 0)
    os.chdir(folder.work)
    rank.reset_signals()
    os.execve(program, argv, env)


def _give_to(account: Mapping[str, Any], paths: list[str]) -> None:
    for path in paths:
        os.chown(path, account["uid"], account["gid"], follow_symlinks=False)


def _die(gang: Gang, sentence: str) -> NoReturn:
    try:
        gang.note(sentence)
    finally:
        os._exit(rank.CANNOT_RUN)
