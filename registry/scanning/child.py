"""The process that reads untrusted files, with limited memory and time and without secrets.

stdin: one line, {"files": [[path, name], …], "seconds" (for each file), "memory_bytes"}. stdout: one line per
file, [index, {"verdict", "findings", "note"}].
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path
from types import FrameType

from registry.scanning.file_scan import verdict_for_file
from registry.scanning.verdict_names import NOT_SCANNED, Verdict


def main() -> None:
    order = json.loads(sys.stdin.readline())
    # Allocations beyond this limit raise MemoryError, which `judge` turns into a verdict.
    resource.setrlimit(resource.RLIMIT_AS, (order["memory_bytes"], order["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _stop)
    for index, (path, name) in enumerate(order["files"]):
        sys.stdout.write(json.dumps([index, _within(path, name, order["seconds"]).to_json()]) + "\n")
        # Each line at once: if a later file kills the process, the verdicts so far are not lost.
        sys.stdout.flush()


def _within(path: str, name: str, seconds: int) -> Verdict:
    # Python handles the signal between two instructions: a long call into C delays it, and the parent's time
    # limit ends such a process.
    signal.alarm(seconds)
    try:
        return verdict_for_file(Path(path), name)
    except TooLong:
        return Verdict(NOT_SCANNED, note=f"The scanner gave up after {seconds} seconds.")
    finally:
        signal.alarm(0)


class TooLong(BaseException):
    """The time for a file is over. It is no Exception, so that no parser catches it."""


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise TooLong


if __name__ == "__main__":
    main()
