"""`python -I -S bytecode.py ENVIRONMENT STORE`: compiles the modules of an environment, and executes none.

Each compiled module is kept in the store by the hash of its source, read here, and linked into every further
environment with the same module. Standard library only; it is run by the environment's base interpreter."""

from __future__ import annotations

import ctypes
import hashlib
import os
import py_compile
import resource
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PR_SET_PDEATHSIG = 1
MAX_WORKERS = 8
SKIPPED = ("__pycache__", "tests")
MAX_CPU_S = 300
CHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH


def main(environment: str, store: str) -> int:
    """Returns the exit code: 1 if a worker died."""
    sources = sorted(_sources(environment))
    count = max(1, min(len(os.sched_getaffinity(0)), MAX_WORKERS))
    workers = [_fork(sources[number::count], store) for number in range(count)]
    # No call that Python 3.8 lacks: the interpreter is that of the environment.
    statuses = [os.waitpid(pid, 0)[1] for pid in workers]
    return int(any(statuses))


def _sources(environment: str) -> Iterator[str]:
    for path, folders, files in os.walk(os.path.join(environment, "lib")):
        # Nearly half of the modules of scientific packages are tests, which a run imports hardly ever.
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in files:
            if name.endswith(".py"):
                yield os.path.join(path, name)


def _fork(sources: list[str], store: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # If its parent is killed, so is this.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # A module can be made so that compiling it takes for ever.
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
        for source in sources:
            _compile(source, store)
        code = 0
    finally:
        os._exit(code)


def _compile(source: str, store: str) -> None:
    folder, name = os.path.split(source)
    target = os.path.join(folder, "__pycache__", f"{name[:-3]}.{sys.implementation.cache_tag}.pyc")
    try:
        if not os.path.islink(source):
            _link(source, _stored(source, store), target)
    # Not every file with this ending is a module: templates, and tests of other versions of Python.
    except (py_compile.PyCompileError, ValueError, RecursionError, MemoryError, OverflowError):
        return
    # A package with strange names of files, or a full disk: the run compiles the module.
    except OSError:
        return


def _stored(source: str, store: str) -> str:
    with open(source, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    compiled = os.path.join(store, sys.implementation.cache_tag, digest[:2], f"{digest}.pyc")
    if not os.path.exists(compiled):
        py_compile.compile(source, compiled, doraise=True, invalidation_mode=CHECKED)
    return compiled


def _link(source: str, compiled: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.link(compiled, target)
    except FileExistsError:
        return
    except OSError:  # a file has a limited number of links: an empty module is in every package
        py_compile.compile(source, target, doraise=True, invalidation_mode=CHECKED)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
