"""Limits the size of log files. The process that writes a file rotates it itself, without losing a line.

`python -m trainhub.logs.rotation FILE MODULE ARGUMENTS` runs a module whose standard output and error are
FILE. A thread watches the file's size. It renames a file that has become too large and points both
descriptors at a new one: whatever is written up to that moment goes to the old file, everything later to the
new one. No other process is needed for that."""

from __future__ import annotations

import os
import runpy
import sys
import threading
from pathlib import Path

MAX_BYTES = 10 * 2**20
GENERATIONS = 3
CHECK_SECONDS = 2.0
OUTPUTS = (1, 2)


def rotate(log: Path, generations: int = GENERATIONS) -> None:
    """Renames `web.log` to `web.log.1`, `web.log.1` to `web.log.2` and so on. The oldest file is replaced."""
    for number in range(generations, 0, -1):
        older = log.with_name(f"{log.name}.{number}")
        newer = log.with_name(f"{log.name}.{number - 1}") if number > 1 else log
        if newer.exists():
            newer.replace(older)


def is_too_large(log: Path, max_bytes: int = MAX_BYTES) -> bool:
    try:
        return log.stat().st_size > max_bytes
    except FileNotFoundError:
        return False


def open_log(log: Path) -> int:
    """Returns a descriptor that appends to the file. Only this account may read it."""
    # O_APPEND: two processes that write to one file must not overwrite each other's lines.
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def reopen(log: Path) -> None:
    """Rotates the file, and points standard output and error of this process at the new one."""
    rotate(log)
    descriptor = open_log(log)
    # dup2 replaces a descriptor atomically, so no other thread's write can fail in between.
    for output in OUTPUTS:
        os.dup2(descriptor, output)
    os.close(descriptor)


def keep_small(log: Path, max_bytes: int = MAX_BYTES, check_seconds: float = CHECK_SECONDS) -> None:
    """Starts a thread that watches the size of the file as long as this process lives."""
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(check_seconds):
            try:
                # The size of what this process writes, whatever lies at the path by now.
                if os.fstat(OUTPUTS[0]).st_size > max_bytes:
                    reopen(log)
            except OSError as error:
                sys.stderr.write(f"{log} could not be rotated: {error}\n")
                sys.stderr.flush()
                # The rotation is tried again later, but every two seconds the message itself would fill the
                # log.
                stopped.wait(60)

    threading.Thread(target=watch, name="log-rotation", daemon=True).start()


def main() -> None:
    file, module, *arguments = sys.argv[1:]
    keep_small(Path(file))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
