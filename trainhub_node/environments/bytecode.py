"""`python -I -S bytecode.py MODE ENVIRONMENT STORE`: compiles the modules of an environment, and executes
none.

Each compiled module is kept in the store by the hash of its source, read here, and linked into every further
environment with the same module. Without a store ("") it has its place in the environment alone. Standard
library only; it is run by the environment's base interpreter.

The mode says which modules: `all`; `stored`, those alone that the store has, with a folder for the others,
and exit code LEFT if there are others; `late`, all, with the lowest priority: runs use the environment."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import py_compile
import resource
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ALL, STORED, LATE = "all", "stored", "late"
LEFT = 3
FOLDER = "__pycache__"
PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
# The number of the system call `ioprio_set`, for which Python and the C library have no function.
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
IOPRIO_WHO_PROCESS, IOPRIO_IDLE = 1, 3 << 13
LOWEST = 19
MAX_WORKERS = 8
# Beside runs: one worker for so many processors. Priorities count only within a control group, so that a
# worker may take a whole processor from runs.
PROCESSORS_PER_LATE_WORKER, MAX_LATE_WORKERS = 8, 4
SKIPPED = (FOLDER, "tests")
MAX_CPU_S = 300
MAX_MEMORY_BYTES = 4 * 2**30
CHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH


def main(mode: str, environment: str, store: str) -> int:
    """Returns the exit code: 1 if a worker died, LEFT if modules are left to compile."""
    sources = sorted(_sources(environment))
    processors = len(os.sched_getaffinity(0))
    count = min(processors, MAX_WORKERS)
    if mode == LATE:
        _give_way()
        count = min(processors // PROCESSORS_PER_LATE_WORKER, MAX_LATE_WORKERS)
    count = max(1, count)
    workers = [_fork(mode, sources[number::count], store) for number in range(count)]
    # No call that Python 3.8 lacks: the interpreter is that of the environment.
    statuses = [os.waitpid(pid, 0)[1] for pid in workers]
    codes = {status >> 8 if status & 0xFF == 0 else 1 for status in statuses}
    return 1 if codes - {0, LEFT} else max(codes)


def _give_way() -> None:
    """Ends with the agent, and takes only what runs leave of processors and disks."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Also where the agent itself is preferred by the scheduler, which this process would inherit.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST)
    number = IOPRIO_SET.get(os.uname().machine)
    if number is not None:
        libc.syscall(number, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE)
    try:
        # Where the kernel groups processes by session, the priority of each counts only within it.
        with open("/proc/self/autogroup", "w") as file:
            file.write(str(LOWEST))
    except OSError:
        return  # this kernel has no such groups


def _sources(environment: str) -> Iterator[str]:
    for path, folders, files in os.walk(os.path.join(environment, "lib")):
        # Nearly half of the modules of scientific packages are tests, which a run imports hardly ever.
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in files:
            if name.endswith(".py"):
                yield os.path.join(path, name)


def _fork(mode: str, sources: list[str], store: str) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # If its parent is killed, so is this.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # killed before that
        # A module can be made so that compiling it takes for ever, or all memory.
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        is_done = [_provide(mode, source, store) for source in sources]
        code = 0 if all(is_done) else LEFT
    finally:
        os._exit(code)


def _provide(mode: str, source: str, store: str) -> bool:
    """Puts the compiled module into its place. Returns False if it must be compiled and may not be now."""
    folder, name = os.path.split(source)
    target = os.path.join(folder, FOLDER, f"{name[:-3]}.{sys.implementation.cache_tag}.pyc")
    if os.path.islink(source) or os.path.exists(target):
        return True
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if mode == STORED and not os.path.isdir(store):
            return False
        stored = _stored_path(source, store) if store else ""
        if mode == STORED and not os.path.exists(stored):
            return False
        _compile(source, stored, target)
    # Not every file with this ending is a module: templates, and tests of other versions of Python.
    except (py_compile.PyCompileError, ValueError, RecursionError, MemoryError, OverflowError):
        return True
    # A package with strange names of files, or a full disk: the run compiles the module.
    except OSError:
        return True
    return True


def _stored_path(source: str, store: str) -> str:
    with open(source, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return os.path.join(store, sys.implementation.cache_tag, digest[:2], f"{digest}.pyc")


def _compile(source: str, stored: str, target: str) -> None:
    # Written to another name first and renamed, so that what is killed leaves no half of a module.
    if stored and not os.path.exists(stored):
        py_compile.compile(source, stored, doraise=True, invalidation_mode=CHECKED)
    try:
        if stored:
            os.link(stored, target)
            return
    except FileExistsError:
        return
    # A file has a limited number of links: an empty module is in every package.
    except OSError as error:
        if error.errno == errno.EACCES:
            raise  # another process has finished the environment
    py_compile.compile(source, target, doraise=True, invalidation_mode=CHECKED)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
