"""The rank wrapper: starts one rank as planned, stays its parent, and records how it ended."""

from __future__ import annotations

import errno
import os
import sys
import time

from trainhub_launch.errors import UnknownVariable
from trainhub_launch.expand import expand
from trainhub_node import proc, records
from trainhub_node.rundir import RunDir

# As in gang.py: the wrapper stays in memory as long as its rank, and one of them runs for each rank.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from trainhub_node.isolation.cgroups import Group
    from trainhub_node.isolation.namespaces import Namespaces
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WAITED_SIGNALS = (signal.SIGCHLD, *FORWARDED_SIGNALS)
# What Open MPI 4 and 5, PMIx and PRRTE pass to a rank. Everything else in mpirun's environment is the
# launcher's own.
MPI_PREFIXES = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "ORTE_", "OPAL_", "PRRTE_", "HWLOC_")
PREFIX_NAMES = ("OPAL_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX")
# Before the names of variables with secret values in the environment of mpirun and its daemons.
SECRET_PREFIX = "TRAINHUB_SECRET_"  # noqa: S105
INTERFACE_SUFFIX = "_if_include"
# In the order of preference: Open MPI sets all of them, other launchers only the later ones.
RANK_NAMES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
# As shells do: 126 for what cannot be executed, 127 for what does not exist.
CANNOT_RUN, NOT_FOUND = 126, 127
# Adds 30 % of the machine's memory to what the kernel counts for the process when it looks for a victim.
OOM_SCORE = b"300"


def run(
    folder: RunDir,
    start: Mapping[str, Any],
    namespaces: Namespaces | None = None,
    group: Group | None = None,
) -> NoReturn:
    """Starts the rank, waits for it, and exits with its status. Never returns; runs in a process of its own,
    which stays outside of the rank's `namespaces` and control `group`."""
    # Before the fork: a SIGCHLD between it and the wait would be lost otherwise.
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_SIGNALS)
    os.umask(0o077)
    log = os.open(
        folder.log(start["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    # Counted before and after, because the kernel does not tell who sent a SIGKILL.
    count_kills = proc.oom_kills if group is None else group.oom_kills
    started_at, oom_kills = time.time(), count_kills()
    pid = os.fork() if namespaces is None else namespaces.fork()
    if pid == 0:
        _exec_rank(start, log, namespaces, group)
    os.close(log)
    _set_group(pid)
    # Before the wait: the agent shows the rank as running as soon as this record exists.
    records.write(
        folder.started(start["rank"]),
        {
            "pid": pid,
            "identity": proc.identity(pid) or "",
            "at": started_at,
            "wrapper": os.getpid(),
            "wrapper_identity": proc.identity(os.getpid()),
        },
    )
    status, by_us = _wait(pid)
    code = os.waitstatus_to_exitcode(status)
    out_of_memory = code == -signal.SIGKILL and not by_us and count_kills() > oom_kills
    records.write(
        folder.ended(start["rank"]), {**end_record(code, by_us=by_us), "out_of_memory": out_of_memory}
    )
    os._exit(code if code >= 0 else 128 - code)


def end_record(code: int, *, by_us: bool) -> dict[str, object]:
    """Returns the record of an end. `by_us`: the signal to end came through the wrapper."""
    return {
        "at": time.time(),
        "exit_code": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "by_us": by_us,
    }


def run_under_mpirun(path: str) -> NoReturn:
    """Runs the wrapper that mpirun starts. The environment contains the rank's number and the addresses of
    its peers."""
    folder = RunDir.at(path)
    number = next((os.environ[name] for name in RANK_NAMES if name in os.environ), "")
    start_records = records.read(folder.starts) or {}
    if number not in start_records:
        sys.stderr.write(
            f"trainhub: mpirun started rank {number or '(unnumbered)'}, which the plan does not have here\n"
        )
        sys.stderr.flush()
        os._exit(CANNOT_RUN)
    start = start_records[number]
    mpi_variables = {name: value for name, value in os.environ.items() if name.startswith(MPI_PREFIXES)}
    if "prefix" in start:
        # These come from mpirun's node and describe that node.
        prefixes = {name: start["prefix"] for name in PREFIX_NAMES if name in mpi_variables}
        mpi_variables = {
            name: value for name, value in mpi_variables.items() if not name.endswith(INTERFACE_SUFFIX)
        } | prefixes
    secrets = {name: os.environ[SECRET_PREFIX + name] for name in start.get("secrets", ())}
    run(folder, {**start, "env": {**mpi_variables, **start["env"], **secrets}})


def secret_variables(planned: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns (variable, name of its secret) for each planned variable whose value is a secret."""
    return [
        (name, value["name"])
        for name, value in planned.items()
        if not isinstance(value, str) and value["kind"] == "secret"
    ]


def _wait(pid: int) -> tuple[int, bool]:
    """Returns the status of `pid`, and whether a signal was forwarded to its group."""
    is_signalled = False
    while True:
        # WNOHANG and then a wait for signals: SIGCHLD is pending already if the rank ended meanwhile.
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status, is_signalled
        number = signal.sigwaitinfo(WAITED_SIGNALS).si_signo
        if number in FORWARDED_SIGNALS:
            is_signalled = True
            signal_group(pid, number)


def signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _set_group(pid: int) -> None:
    """Puts the rank into a process group of its own. Both parent and child call this, so that the group
    exists whichever of them runs first."""
    try:
        os.setpgid(pid, pid)
    except (PermissionError, ProcessLookupError):
        return  # it has run its program already, or has ended


def _exec_rank(
    start: Mapping[str, Any], log: int, namespaces: Namespaces | None, group: Group | None
) -> NoReturn:
    """Becomes the planned program, or writes the error to the log. Runs in the forked process and never
    returns."""
    code = CANNOT_RUN
    try:
        _set_group(0)
        redirect_output(log)
        _raise_oom_score()
        if group is not None:
            group.enter()
        if namespaces is not None:
            namespaces.enter()
        switch_account(start["account"])
        os.chdir(start["cwd"])
        argv = [expand(item, start["env"]) for item in start["argv"]]
        if argv[0] == "python":
            argv[0] = start["python"]
        reset_signals()
        code = NOT_FOUND
        os.execvpe(argv[0], argv, start["env"])
    except UnknownVariable as error:
        _write_error(f"{error}; write $$ for a dollar sign")
        code = CANNOT_RUN
    except FileNotFoundError as error:
        _write_error(
            _not_found_message(argv[0], start) if code == NOT_FOUND else f"{error.filename}: {error.strerror}"
        )
    except (OSError, ValueError) as error:
        _write_error(_exec_error_message(error, start))
        code = CANNOT_RUN
    finally:
        # Also after an unexpected error: this copy of the wrapper must not continue as a second wrapper.
        os._exit(code)


def redirect_output(log: int) -> None:
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _raise_oom_score() -> None:
    """Makes the kernel choose this process first when memory runs out, before the child and the agent, which
    report it."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:
        return  # not available in every container
    try:
        os.write(fd, OOM_SCORE)
    except OSError:
        return  # it has a higher score already, and may not lower it
    finally:
        os.close(fd)


# The groups first: without root's rights they cannot be changed any more.
def switch_account(account: Mapping[str, Any] | None) -> None:
    if account is None or os.getresuid() == (account["uid"],) * 3:
        return
    join_groups(account)
    os.setresgid(account["gid"], account["gid"], account["gid"])
    os.setresuid(account["uid"], account["uid"], account["uid"])


def join_groups(account: Mapping[str, Any]) -> None:
    """Gives this process the further groups of the account."""
    groups = account.get("groups")
    if groups is None:
        os.initgroups(account["name"], account["gid"])
    else:
        os.setgroups(groups)


def reset_signals() -> None:
    """Resets signals as a shell does: none blocked, none ignored (Python ignores SIGPIPE)."""
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # SIGKILL, SIGSTOP and the numbers that the C library keeps
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _not_found_message(program: str, start: Mapping[str, Any]) -> str:
    place = start.get("place", "on this node")
    if "/" not in program:
        return f"{program}: no such program {place} (looked in {start['env'].get('PATH', '')})"
    if os.path.exists(program):
        return f"{program}: the interpreter that its first line names does not exist {place}"
    return f"{program}: no such file {place}"


def _exec_error_message(error: OSError | ValueError, start: Mapping[str, Any]) -> str:
    program = start["argv"][0]
    if isinstance(error, OSError) and error.errno == errno.EACCES:
        return f"{program}: not executable; make it so (chmod +x), or name its interpreter as the command"
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        return (
            f"{program}: not a program that this machine can run; a script needs a first line like "
            "#!/usr/bin/env python3"
        )
    return f"{program}: cannot be started: {getattr(error, 'strerror', '') or error}"


def _write_error(sentence: str) -> None:
    os.write(2, f"trainhub: {sentence}\n".encode(errors="backslashreplace"))
